// SPDX-License-Identifier: Apache-2.0
// The catalogue. Order within a severity is the order in which causes are worth checking.
#include <chokepoint/findings/findings.hpp>

namespace chokepoint::findings {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::kCritical: return "critical";
    case Severity::kWarning: return "warning";
    case Severity::kInfo: return "info";
  }
  return "info";
}

const std::vector<Check>& catalogue() {
  using enum Severity;
  static const std::vector<Check> kChecks{
      // Settings and software that switch the fast path off.
      {"socket-fallback", kCritical, "NCCL uses sockets where faster cards could carry it",
       "make the RDMA devices visible (map /dev/infiniband into the container, load the network plugin) and remove NCCL_IB_DISABLE", "NCCL_DEBUG=INFO: \"Using network IB\" (or the plugin's name)",
       "NCCL user guide, environment variables; NVIDIA/nccl#451, pytorch/pytorch#111424"},
      {"setting-disables-network", kCritical, "a setting switches RDMA off", "unset it", "NCCL_DEBUG=INFO prints \"set by environment\" for each setting", "NCCL user guide, environment variables"},
      {"setting-disables-p2p", kCritical, "a setting switches peer-to-peer or shared memory off", "unset it", "NCCL_DEBUG=INFO: channels \"via P2P\"", "NCCL user guide, environment variables"},
      {"p2p-detour", kCritical, "peer-to-peer copies are slower than copies through host memory: the IOMMU or ACS turns them round",
       "switch ACS off on root ports and on switch downstream ports (BIOS, or setpci), set iommu=pt or switch the IOMMU off", "lspci -vvv | grep ACSCtl; p2pBandwidthLatencyTest", "NCCL user guide, troubleshooting: PCI ACS; NVIDIA/nccl-tests#115"},
      {"acs-redirect", kCritical, "ACS sends peer-to-peer requests up to the root complex", "clear ReqRedir and CmpltRedir on root ports and on switch downstream ports (BIOS, or setpci -s ADDRESS ECAP_ACS+6.w=0000)",
       "lspci -vvv | grep -i acsctl", "NCCL user guide, troubleshooting: PCI ACS; PCI Express Base Specification, ACS"},
      {"virtual-bridge-slow", kCritical, "the topology says that a bridge above GPUs or NICs carries next to nothing", "give NCCL a topology file of the real machine (NCCL_TOPO_FILE), or correct the file's link_speed and link_width",
       "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH: no PCI[0.2]", "NVIDIA/nccl#749, NVIDIA/nccl-tests#256"},
      {"nvlink-inactive", kCritical, "NVLinks of a GPU are down while others of it are up", "reseat the bridge or module, reset the GPU; replace it when the links stay down", "nvidia-smi nvlink -s", "Azure/azhpc-diagnostics#73; NVIDIA/nccl#340"},
      {"nvlink-absent", kCritical, "a board with NVLink whose GPUs show none", "start the fabric manager of the driver's version; check nvidia-smi -q for the fabric's state", "systemctl status nvidia-fabricmanager; nvidia-smi topo -m", "NVIDIA Fabric Manager user guide"},
      {"fabric-state", kCritical, "a GPU has not joined the NVSwitch fabric", "start or restart the fabric manager (or IMEX on multi-node systems); look for its errors", "nvidia-smi -q | grep -A3 Fabric", "NVIDIA Fabric Manager user guide; NVIDIA/nccl#2186"},
      {"results-wrong", kCritical, "a benchmark computed wrong results", "do not train on this machine; find the GPU or link by halving the set of devices", "all_reduce_perf -c 1", "nccl-tests README"},
      {"pcie-link-narrow", kCritical, "a PCIe link trained at fewer lanes than card and slot have", "reseat the card and its riser, look for bent contacts, check bifurcation in the BIOS", "lspci -vvv -s ADDRESS | grep LnkSta", "PCI Express Base Specification, link training"},
      {"port-down", kCritical, "a port of an adapter is down", "check cable, transceiver and the switch port; ask for a subnet manager when it stays in Init", "ibstat", "InfiniBand Architecture Specification, port states"},
      {"log-error", kCritical, "NCCL reports an error", "see the message", "NCCL_DEBUG=INFO", "NCCL user guide, troubleshooting"},
      // Faults that cost bandwidth.
      {"gdr-off", kWarning, "NICs do not reach GPU memory directly", "load the peer memory module (nvidia_peermem) or use a driver with DMA-BUF; keep GPU and NIC under one switch; ACS off",
       "NCCL_DEBUG=INFO: channels \"via NET/IB/n/GDRDMA\"", "NCCL user guide, GPU Direct RDMA; NVIDIA/nccl#1412"},
      {"uplink-shared", kWarning, "pairs under one switch are slower than pairs further apart: without peer-to-peer both copies use the switch's one uplink", "nothing to mend on boards without peer-to-peer; put jobs of two GPUs on different switches",
       "p2pBandwidthLatencyTest", "NVIDIA/nccl#1309"},
      {"pcie-link-slow", kWarning, "a PCIe link at work runs below the speed that card and slot have", "check BIOS link speed setting, riser and retimers", "nvidia-smi -q | grep -A4 \"PCIe Generation\" under load", "PCI Express Base Specification, link training"},
      {"pcie-unequal", kWarning, "GPUs of one host hang on different PCIe generations or widths: collectives run at the slowest", "move the card to a slot like the others' slots", "nvidia-smi --query-gpu=pcie.link.gen.max,pcie.link.width.max --format=csv", "noonghunna/club-3090#895"},
      {"nvlink-partial", kWarning, "GPUs of one host have different numbers of NVLinks", "reseat bridges; compare with a healthy host", "nvidia-smi topo -m; nvidia-smi nvlink -s", "NVIDIA/nccl#340, NVIDIA/nccl#557"},
      {"nvlink-errors", kWarning, "NVLink error counters are not zero", "watch whether they grow under load; reseat or replace when they do", "nvidia-smi nvlink -e", "NVIDIA GPU debug guidelines"},
      {"p2p-islands", kWarning, "GPUs reach each other only inside islands", "check IOMMU and ACS; otherwise keep tensor parallel groups inside an island", "nvidia-smi topo -p2p r", "NVIDIA/nccl#257"},
      {"p2p-off", kWarning, "no GPU may access another", "on boards whose driver refuses it nothing; else check virtualisation, IOMMU and ACS", "nvidia-smi topo -p2p r", "CUDA programming guide, peer-to-peer"},
      {"gpu-nic-bridge", kWarning, "some GPUs reach the NIC only through the host bridge, others through a switch", "allow GPUDirect over the bridge where it is fast (NCCL_NET_GDR_READ=1, NCCL_NET_GDR_LEVEL=PHB), or move the NIC or ranks",
       "nvidia-smi topo -m; NCCL_DEBUG=INFO: GDRDMA", "NVIDIA/nccl#371"},
      {"nic-shared", kWarning, "many GPUs share a NIC", "expect no more than the NIC's line rate for the whole host; add NICs, or reduce inside the host first", "nvidia-smi topo -m; NCCL_DEBUG=INFO: NET/IB Using [...]", "NVIDIA/nccl-tests#29, NVIDIA/nccl-tests#128"},
      {"gpu-nic-far", kWarning, "some GPUs have no NIC nearer than across the sockets", "add or move NICs so that each socket has its own; else place the ranks with most traffic beside the NICs", "nvidia-smi topo -m", "NVIDIA/nccl#371; NCCL user guide, NCCL_NET_GDR_LEVEL"},
      {"hca-unused", kWarning, "NCCL uses fewer network cards than it opened", "check NCCL_IB_HCA, NCCL_CROSS_NIC and the topology; each GPU should use its own card", "NCCL_DEBUG=INFO: which NET/IB/n each channel uses", "NVIDIA/nccl-tests#128"},
      {"hca-missing", kWarning, "hosts of one job opened different numbers of network cards", "compare ibstat on the hosts; check NCCL_IB_HCA", "ibstat; NCCL_DEBUG=INFO", "NVIDIA/nccl-tests#128"},
      {"setting-restricts", kWarning, "a setting keeps NCCL from choosing for itself", "unset it and measure again", "NCCL_DEBUG=INFO prints \"set by environment\" for each setting", "NCCL user guide, environment variables"},
      {"plugin-absent", kWarning, "the network plugin this network needs was not loaded", "install it and put its directory into LD_LIBRARY_PATH", "NCCL_DEBUG=INFO: NET/OFI or the plugin's name", "aws-ofi-nccl README; NCCL user guide, NCCL_NET_PLUGIN"},
      {"fabric-link-degraded", kWarning, "a cable runs slower or narrower than its like", "clean or replace cable and transceiver; check the port's configuration", "iblinkinfo; mlxlink -d DEVICE -c", "InfiniBand Architecture Specification, link width and speed"},
      {"uplinks-missing", kWarning, "a leaf has fewer uplinks than its like", "find the missing cables or disabled ports", "iblinkinfo -S GUID", "NVIDIA/nccl#307"},
      {"rail-miscabled", kWarning, "an adapter is plugged into another rail than its like on other hosts", "swap the cables back", "ibnetdiscover -p", "NVIDIA DGX SuperPOD reference architecture, rail-optimised fabric"},
      {"fabric-islands", kWarning, "parts of the fabric cannot reach each other", "check cables between them; two planes are fine when every host is on both", "ibnetdiscover; ibtracert", "InfiniBand Architecture Specification, subnets"},
      {"port-slow", kWarning, "a port runs slower than its like", "check cable and switch port", "ibstat; mlxlink -d DEVICE", "InfiniBand Architecture Specification, link speed"},
      {"port-errors", kWarning, "error counters of a port are not zero", "clear the counters, run the job, read them again; replace the cable of a port that counts on", "perfquery -x; ibqueryerrors", "InfiniBand Architecture Specification, port counters"},
      {"fabric-oversubscribed", kWarning, "a leaf has less bandwidth up than down", "place groups with most traffic under one leaf; add uplinks", "ibnetdiscover", "NVIDIA/nccl#319"},
      {"measured-below-expected", kWarning, "large messages reach far less than this wiring should give", "go through the findings above; then measure pairs of hosts to find the slow one", "all_reduce_perf -b 64M -e 4G -f 2", "this program's model (docs/models/collective.md)"},
      {"bandwidth-collapses", kWarning, "bandwidth falls again at large sizes", "on RoCE check flow control (PFC, ECN) and counters of dropped or paused packets", "ethtool -S DEVICE | grep -iE 'pause|discard|out_of_sequence'", "NVIDIA/nccl#378"},
      {"clocks-slowed", kWarning, "a GPU runs at reduced clocks for heat or power", "check cooling and power supply", "nvidia-smi -q -d PERFORMANCE", "NVIDIA GPU debug guidelines"},
      {"topology-file-contradicts", kWarning, "the topology file does not fit the machine", "write it anew on the machine (NCCL_TOPO_DUMP_FILE) or remove NCCL_TOPO_FILE", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH", "NVIDIA/nccl#1303; Azure/azhpc-images#327"},
      {"files-contradict", kWarning, "two files say different things about the same cluster", "take them again at the same time on the same hosts", "chokepoint wiring FILE...", "this program"},
      {"rank-list-contradicts", kWarning, "the list of ranks does not fit the numbers below it", "trust the ratio: bus over algorithm bandwidth depends on the number of ranks alone", "nccl-tests with its whole output kept", "nccl-tests doc/PERFORMANCE.md"},
      {"ring-cross-port", kInfo, "each ring receives on one port and sends on another", "cable port 0 of each host to port 1 of the next; cables between equal port numbers break such rings", "NCCL_GRAPH_DUMP_FILE; ibdev2netdev", "luxingcom/aicad-nccl-optimization#1"},
      {"graph-slow", kWarning, "NCCL's own search found very slow paths", "look at the topology it was given: a link in it is declared almost without bandwidth", "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH", "NVIDIA/nccl#749"},
      // Worth knowing.
      {"topology-uplink-slow", kInfo, "a topology file shows switch uplinks slower than what is below them", "power saving at rest looks the same: dump again under load", "lspci -vvv | grep LnkSta", "NVIDIA/nccl#749"},
      {"topology-overlay", kInfo, "an overlay that a cloud's image hands to NCCL", "check that NCCL really gets it (NCCL_TOPO_FILE, /etc/nccl.conf): without it the virtual machine shows a flat tree, GPUDirect is refused and NICs are chosen at random", "NCCL_DEBUG=INFO: \"NCCL_TOPO_FILE set by environment\"",
       "NVIDIA/nccl#513; Azure/azhpc-images"},
      {"ring-crosses-sockets", kInfo, "rings inside the host cross the sockets", "use GPUs of one socket for groups with most traffic", "NCCL_GRAPH_DUMP_FILE: typeintra", "NVIDIA/nccl-tests#74"},
      {"nic-choice-ambiguous", kInfo, "GPUs see the same NICs at the same distance: which GPU takes which NIC is left to the order of PCI addresses", "read in NCCL's log whether each GPU uses its own NIC; else give an edited topology file or update the switch's firmware",
       "NCCL_DEBUG=INFO: NET/IB/n of each rank", "NVIDIA/nccl#820"},
      {"paths-hidden", kInfo, "every path is SYS although GPUs share a NUMA node", "in a virtual machine pass the real topology through (NCCL_TOPO_FILE); else check NPS and SNC settings", "lspci -tv; numactl -H", "NVIDIA/nccl#1464, NVIDIA/nccl#1530"},
      {"switch-write-collapse", kInfo, "switches of this type are known to collapse when two GPUs below one write to two other switches at once", "measure concurrent flows, not pairs; prefer reads", "nvbandwidth with concurrent copies", "local-inference-lab/rtx6kpro"},
      {"pcie-slot-older", kInfo, "the slot is older than the card", "use a slot of the card's generation", "nvidia-smi -q | grep -A6 \"PCIe Generation\"", "PCI Express Base Specification"},
      {"topology-rate-unusual", kInfo, "a topology file declares a line rate no port has", "deliberate tuning? else write the real rate: NCCL decides by it how many ports a GPU uses", "ibstat; ethtool DEVICE", "NVIDIA/nccl#1303"},
      {"rank-count-derived", kInfo, "no complete list of ranks; the numbers say how many took part", "keep nccl-tests' whole output", "nccl-tests doc/PERFORMANCE.md", "nccl-tests doc/PERFORMANCE.md"},
      {"wire-at-line-rate", kInfo, "the wire carries its line rate: what is slow is not the wire", "look at chunk sizes, channels and the host", "ib_write_bw", "NVIDIA/nccl#2409"},
      {"no-common-root", kInfo, "switches without a common root: jobs across them are not placed as one tree", "add the missing switch to the file when the fabric has one", "scontrol show topology", "Slurm topology guide"},
  };
  return kChecks;
}

}  // namespace chokepoint::findings
