// SPDX-License-Identifier: Apache-2.0
// Connections, on Boost.Beast: one thread reads requests and sends replies, processes compute (pool.cpp). A connection has
// a deadline for everything that the client does, so that slow or silent ones end; their number and what they may send at
// once are bounded.
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "routes.hpp"

namespace chokepoint::service {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMostConnections = 256;
constexpr std::uint32_t kLargestHead_bytes = 16 * 1024;
constexpr std::size_t kSmallBody_bytes = std::size_t{1} << 20;
constexpr std::size_t kMostLargeBodies = 4;             ///< requests above kSmallBody_bytes that are read or in work at once
constexpr double kSlowest_bytes_per_s = 256.0 * 1024;   ///< a client that sends or reads more slowly than this is given up
constexpr std::chrono::seconds kIdle(60);               ///< between two requests of one connection
constexpr std::chrono::milliseconds kGrace(250);        ///< work nobody waits for may run so much longer
constexpr std::chrono::seconds kFarewell(5);            ///< for replies under way when the server is asked to stop

/// What all connections share; it outlives the last of them.
struct Shared {
  asio::io_context& io;
  const ServeOptions& options;
  Routes& routes;
  std::size_t connections = 0;
  std::size_t large_bodies = 0;
  bool stopping = false;
};

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

std::chrono::milliseconds allowance(const Shared& shared, double bytes) {
  return std::chrono::milliseconds(static_cast<long long>(1000 * (shared.options.client_timeout_s + bytes / kSlowest_bytes_per_s)));
}

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::shared_ptr<Shared> shared)
      : owned_(std::move(shared)), shared_(*owned_), stream_(std::move(socket)), grace_(shared_.io) {
    ++shared_.connections;
  }
  ~Session() {
    --shared_.connections;
    release();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() { shared_.connections > kMostConnections ? turn_away() : read_head(true); }

 private:
  using Parser = http::request_parser<http::string_body>;

  void turn_away() {
    parser_.emplace();
    answer_and_close(error_reply(503, "the server has too many connections", "try again in a moment"));
  }

  void read_head(bool first) {
    release();
    parser_.emplace();
    parser_->header_limit(kLargestHead_bytes);
    parser_->body_limit(shared_.options.max_upload_bytes);
    if (first) stream_.expires_after(allowance(shared_, 0));
    else stream_.expires_after(kIdle);
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](error_code code, std::size_t) { self->on_head(code); });
  }

  void on_head(error_code code) {
    if (code == http::error::end_of_stream) return close();
    if (code) return on_read_error(code);
    const auto& head = parser_->get();
    const auto field = [&head](http::field name) { return std::string_view(head[name].data(), head[name].size()); };
    const std::string_view target(head.target().data(), head.target().size());
    const std::string_view method(head.method_string().data(), head.method_string().size());
    const auto site = head["Sec-Fetch-Site"];
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    const Provenance from{method, target, field(http::field::host), field(http::field::origin), {site.data(), site.size()}, field(http::field::content_type), has_body, head.count(http::field::host)};
    if (const auto refusal = refused(from, names())) return answer_and_close(error_reply(refusal->status, refusal->message, refusal->fix));
    const std::uint64_t length = parser_->content_length().value_or(0);
    if (length > shared_.options.max_upload_bytes) return answer_and_close(too_large());
    if (parser_->chunked() || length > kSmallBody_bytes) {
      if (shared_.large_bodies >= kMostLargeBodies) return answer_and_close(error_reply(503, "the server is busy with other large requests", "try again in a moment"));
      ++shared_.large_bodies;
      large_ = true;
    }
    if (beast::iequals(head[http::field::expect], "100-continue")) return send_continue();
    read_body();
  }

  void send_continue() {
    auto go = std::make_shared<http::response<http::empty_body>>(http::status::continue_, 11);
    stream_.expires_after(allowance(shared_, 0));
    http::async_write(stream_, *go, [self = shared_from_this(), go](error_code code, std::size_t) {
      if (!code) self->read_body();
    });
  }

  void read_body() {
    const auto length = parser_->content_length();
    const double expected = length ? static_cast<double>(*length) : parser_->chunked() ? static_cast<double>(shared_.options.max_upload_bytes) : 0;
    stream_.expires_after(allowance(shared_, expected));
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code code, std::size_t) {
      if (code) return self->on_read_error(code);
      self->on_request();
    });
  }

  void on_read_error(error_code code) {
    if (code == http::error::body_limit) return answer_and_close(too_large());
    if (code == http::error::header_limit) return answer_and_close(error_reply(431, "the request's head is larger than 16 KiB"));
    if (code == beast::error::timeout || code == http::error::partial_message || code.category() == boost::system::system_category() || code == asio::error::operation_aborted) return close();
    answer_and_close(error_reply(400, "this is no HTTP request: " + code.message()));
  }

  Reply too_large() const {
    return error_reply(413, "the request is larger than " + std::to_string(shared_.options.max_upload_bytes >> 20) + " MiB",
                       "send fewer or compressed files, or start the server with a larger --max-upload");
  }

  void on_request() {
    auto& message = parser_->get();
    keep_alive_ = message.keep_alive() && !shared_.stopping;
    version_ = message.version();
    HttpRequest request;
    request.method = text_of(message.method_string());
    request.path = text_of(message.target().substr(0, message.target().find('?')));
    request.if_none_match = text_of(message[http::field::if_none_match]);
    request.takes_gzip = message[http::field::accept_encoding].find("gzip") != beast::string_view::npos;
    request.body = std::move(message.body());
    only_head_ = request.method == "HEAD";
    stream_.expires_never();
    waiting_ = true;
    ticket_ = shared_.routes.handle(std::move(request), [self = shared_from_this()](Reply reply) { self->on_reply(std::move(reply)); });
    if (waiting_) watch();
  }

  /// Notices that the client goes away while its reply is worked out.
  void watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), ticket = ticket_](error_code code) {
      if (code || !self->waiting_ || self->ticket_ != ticket) return;
      char byte = 0;
      const ssize_t seen = ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (seen > 0) return;  // its next request
      if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch();  // woken by what was read already
      self->grace_.expires_after(kGrace);
      self->grace_.async_wait([self, ticket](error_code cancelled) {
        if (!cancelled && self->waiting_ && self->ticket_ == ticket) self->shared_.routes.gone(ticket);
      });
    });
  }

  void on_reply(Reply reply) {
    waiting_ = false;
    release();
    grace_.cancel();
    error_code ignored;
    stream_.socket().cancel(ignored);
    send(std::move(reply));
  }

  void answer_and_close(Reply reply) {
    keep_alive_ = false;
    only_head_ = false;
    send(std::move(reply));
  }

  void send(Reply reply) {
    auto message = std::make_shared<http::response<http::string_body>>(static_cast<http::status>(reply.status), version_);
    message->set(http::field::server, "chokepoint");
    if (!reply.type.empty()) message->set(http::field::content_type, reply.type);
    message->set("X-Content-Type-Options", "nosniff");
    message->set("Referrer-Policy", "no-referrer");
    message->set("X-Frame-Options", "DENY");
    message->set("Cross-Origin-Opener-Policy", "same-origin");
    message->set("Cross-Origin-Resource-Policy", "same-origin");
    // Stored answers would outlive the server that gave them; the page's files are asked after by their tag.
    message->set(http::field::cache_control, reply.type == "application/json" ? "no-store" : "no-cache");
    for (const auto& [name, value] : reply.headers) message->set(name, value);
    message->keep_alive(keep_alive_);
    const std::size_t size = reply.body.size();
    if (!only_head_) message->body() = std::move(reply.body);
    if (reply.status != 204 && reply.status != 304) message->content_length(size);
    stream_.expires_after(allowance(shared_, static_cast<double>(size)));
    const auto done = [self = shared_from_this(), message](error_code code, std::size_t) {
      if (code || !self->keep_alive_) return self->close();
      self->read_head(false);
    };
    if (!only_head_) {
      http::async_write(stream_, *message, done);
      return;
    }
    auto head = std::make_shared<http::response_serializer<http::string_body>>(*message);
    http::async_write_header(stream_, *head, [done, head](error_code code, std::size_t count) { done(code, count); });
  }

  /// The client still sees the reply when it has sent what nobody read: the sending side ends first.
  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (parser_ && parser_->is_done()) return;
    constexpr std::chrono::seconds kLinger(2);
    stream_.expires_after(kLinger);
    drain();
  }

  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(64 * 1024), [self = shared_from_this()](error_code code, std::size_t) {
      if (!code) self->drain();
    });
  }

  void release() {
    if (large_) --shared_.large_bodies;
    large_ = false;
  }

  /// Names of this server: those it was given, and the address that the client reached where that is not loopback.
  std::vector<std::string> names() {
    std::vector<std::string> out = shared_.options.names;
    error_code code;
    const tcp::endpoint own = stream_.socket().local_endpoint(code);
    if (!code) out.push_back(own.address().is_v6() ? "[" + own.address().to_string() + "]" : own.address().to_string());
    return out;
  }

  std::shared_ptr<Shared> owned_;
  Shared& shared_;
  beast::tcp_stream stream_;
  asio::steady_timer grace_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::uint64_t ticket_ = 0;
  unsigned version_ = 11;
  bool keep_alive_ = false;
  bool only_head_ = false;
  bool waiting_ = false;
  bool large_ = false;
};

class Listener {
 public:
  explicit Listener(std::shared_ptr<Shared> shared) : owned_(std::move(shared)), shared_(*owned_), acceptor_(shared_.io), pause_(shared_.io) {}

  Result<int> open() {
    error_code code;
    const asio::ip::address address = asio::ip::make_address(shared_.options.host == "localhost" ? "127.0.0.1" : shared_.options.host, code);
    if (code) return fail("--host is '" + shared_.options.host + "', expected an address such as 127.0.0.1, 0.0.0.0 or ::1");
    const tcp::endpoint endpoint(address, static_cast<unsigned short>(shared_.options.port));
    acceptor_.open(endpoint.protocol(), code);
    if (!code) acceptor_.set_option(tcp::acceptor::reuse_address(true), code);
    if (!code) acceptor_.bind(endpoint, code);
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (!code) return static_cast<int>(acceptor_.local_endpoint().port());
    const std::string where = shared_.options.host + " port " + std::to_string(shared_.options.port);
    if (code == asio::error::address_in_use) {
      return fail(where + " is taken by another program", {}, {"perhaps chokepoint serve runs already: open http://" + shared_.options.host + ":" + std::to_string(shared_.options.port) + "/", "or choose another with --port; --port 0 takes any free one"});
    }
    return fail("cannot listen on " + where + ": " + code.message(), {}, {"choose another with --port; ports below 1024 need rights of their own"});
  }

  void accept() {
    acceptor_.async_accept([this](error_code code, tcp::socket socket) {
      if (code == asio::error::operation_aborted || !acceptor_.is_open()) return;
      if (code) return accept_later();  // out of descriptors: others close some
      socket.set_option(tcp::no_delay(true), code);
      std::make_shared<Session>(std::move(socket), owned_)->start();
      accept();
    });
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
  }

 private:
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code code) {
      if (!code) accept();
    });
  }

  std::shared_ptr<Shared> owned_;
  Shared& shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
};

/// Ends the loop: at once on a second signal, else when the replies under way have gone out.
class Stopper {
 public:
  Stopper(Shared& shared, Listener& listener, const std::atomic<bool>* stop)
      : shared_(shared), listener_(listener), stop_(stop), signals_(shared.io, SIGINT, SIGTERM), timer_(shared.io) {}

  void start() {
    wait_for_signal();
    if (stop_ != nullptr) look();
  }

 private:
  void wait_for_signal() {
    signals_.async_wait([this](error_code code, int) {
      if (code) return;
      if (shared_.stopping) return shared_.io.stop();
      begin();
      wait_for_signal();
    });
  }

  void begin() {
    shared_.stopping = true;
    listener_.close();
    deadline_ = std::chrono::steady_clock::now() + kFarewell;
    finish();
  }

  void finish() {
    if (shared_.routes.idle() || std::chrono::steady_clock::now() > deadline_) return shared_.io.stop();
    again([this] { finish(); });
  }

  void look() {
    if (*stop_) return begin();
    again([this] { look(); });
  }

  template <class Next>
  void again(Next next) {
    timer_.expires_after(std::chrono::milliseconds(50));
    timer_.async_wait([next](error_code code) {
      if (!code) next();
    });
  }

  Shared& shared_;
  Listener& listener_;
  const std::atomic<bool>* stop_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

bool can_serve() { return true; }

Result<bool> serve(const ServeOptions& given, const Spawn& spawn, const std::function<void(int port)>& ready, const std::atomic<bool>* stop) {
  ServeOptions options = given;
  if (options.workers <= 0) options.workers = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
  options.task_workers = std::max(1, options.task_workers);
  TRY_INTO(Studies studies, Studies::open(options.studies.empty() ? usual_studies_file() : options.studies));
  asio::io_context io(1);
  Routes routes(io, options, spawn, std::move(studies));
  const auto shared = std::make_shared<Shared>(Shared{io, options, routes, 0, 0, false});
  Listener listener(shared);
  TRY_INTO(const int port, listener.open());
  TRY_INTO([[maybe_unused]] const bool warm, routes.warm());
  Stopper stopper(*shared, listener, stop);
  stopper.start();
  listener.accept();
  ready(port);
  io.run();
  return true;
}

}  // namespace chokepoint::service
