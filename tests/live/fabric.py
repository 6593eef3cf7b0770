#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A two-level fat tree as ibsim's net file: fabric.py LEAVES HOSTS_PER_LEAF SPINES. The last leaf lacks one uplink."""
import sys

leaves, hosts, spines = (int(word) for word in sys.argv[1:4])
for leaf in range(leaves):
    print(f'Switch {hosts + spines} "leaf{leaf}"')
    for host in range(hosts):
        print(f'[{host + 1}] "node{leaf * hosts + host} mlx5_0"[1]')
    for spine in range(spines - (leaf == leaves - 1)):
        print(f'[{hosts + spine + 1}] "spine{spine}"[{leaf + 1}]')
    print()
for spine in range(spines):
    print(f'Switch {leaves} "spine{spine}"')
    for leaf in range(leaves - (spine == spines - 1)):
        print(f'[{leaf + 1}] "leaf{leaf}"[{hosts + spine + 1}]')
    print()
for leaf in range(leaves):
    for host in range(hosts):
        print(f'Hca 1 "node{leaf * hosts + host} mlx5_0"\n[1] "leaf{leaf}"[{host + 1}]\n')
