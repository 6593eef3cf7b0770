// SPDX-License-Identifier: Apache-2.0
#include "studies.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chokepoint/base/files.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>

namespace chokepoint::service {
namespace {

constexpr int kSchema = 1;
constexpr std::int64_t kMostStudies = 10000;
constexpr std::size_t kLongestName = 200;
constexpr int kWaitAtStart_ms = 2000;  ///< for another process that writes
/// The same while serving: other requests stand still so long, and the client tries again.
constexpr int kWait_ms = 50;

/// "CHKP": tells our files from other programs' databases.
constexpr int kApplication = 0x43484B50;

tl::unexpected<Error> failure_of(sqlite3* file) {
  const int code = sqlite3_errcode(file) & 0xff;  // the low byte is the kind, the rest its detail
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return fail(Studies::kLocked, {}, {"nothing was changed; try again in a moment"});
  return fail("studies: " + std::string(sqlite3_errmsg(file)));
}

FileIdentity identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {static_cast<std::uint64_t>(found.st_dev), static_cast<std::uint64_t>(found.st_ino)};
}

std::string log_of(const std::string& path) { return path + "-wal"; }

/// What was written to the file is on the disk, not on its way there.
void synchronise(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

/// One statement with its values bound in order.
class Statement {
 public:
  Statement(sqlite3* file, const char* sql) : file_(file) { code_ = sqlite3_prepare_v2(file, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return *this;
  }
  Statement& bind(std::int64_t number) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  /// Whether there is a row.
  bool next() {
    if (code_ != SQLITE_OK && code_ != SQLITE_ROW) return false;
    code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  bool failed() const { return code_ != SQLITE_OK && code_ != SQLITE_ROW && code_ != SQLITE_DONE; }
  tl::unexpected<Error> failure() const { return failure_of(file_); }
  std::string text(int column) const {
    const auto* at = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return at == nullptr ? std::string() : std::string(at, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3* file_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

Result<bool> execute(sqlite3* file, const char* sql) {
  if (sqlite3_exec(file, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return true;
  return failure_of(file);
}

Result<std::int64_t> one_number(sqlite3* file, const char* sql) {
  Statement statement(file, sql);
  if (!statement.next()) return statement.failure();
  return statement.number(0);
}

/// Creates what is missing, refuses what is another program's or a later version's.
Result<bool> prepare(sqlite3* file) {
  sqlite3_busy_timeout(file, kWaitAtStart_ms);
  TRY_INTO(const std::int64_t application, one_number(file, "PRAGMA application_id"));
  TRY_INTO(const std::int64_t version, one_number(file, "PRAGMA user_version"));
  TRY_INTO(const std::int64_t tables, one_number(file, "SELECT count(*) FROM sqlite_master"));
  if (tables > 0 && application != kApplication) return fail("is another program's database, expected a file of studies");
  if (version > kSchema) return fail("was written by a later version of chokepoint");
  TRY_INTO([[maybe_unused]] const bool wal, execute(file, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF"));
  return execute(file,
                 "BEGIN IMMEDIATE;"
                 "PRAGMA application_id=1128811344;"
                 "PRAGMA user_version=1;"
                 "CREATE TABLE IF NOT EXISTS studies(id TEXT PRIMARY KEY, name TEXT NOT NULL, document TEXT NOT NULL,"
                 " revision INTEGER NOT NULL, created_s INTEGER NOT NULL, changed_s INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
                 "COMMIT");
}
static_assert(kApplication == 1128811344 && kSchema == 1, "as the pragmas of prepare() say");

Result<std::string> new_id() {
  std::array<unsigned char, 12> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return fail("studies: no random numbers");
  std::string id;
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

Result<bool> check_name(const std::string& name) {
  if (name.empty() || name.size() > kLongestName) return fail("a study's name must have 1 to 200 bytes");
  return true;
}

constexpr const char* kHead = "SELECT id, name, revision, created_s, changed_s, length(CAST(document AS BLOB))";

StudyHead head_of(const Statement& row) {
  return {row.text(0), row.text(1), row.number(2), row.number(3), row.number(4), row.number(5)};
}

Error located(Error error, const std::string& path) {
  error.pos.file = path;
  error.notes.emplace_back("choose another file with --studies FILE");
  return error;
}

}  // namespace

void Studies::Close::operator()(sqlite3* file) const { sqlite3_close(file); }

Result<Studies> Studies::open(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(directory_of(path), code);
  sqlite3* file = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Studies studies(path, file);
  if (opened != SQLITE_OK) {
    return tl::make_unexpected(located({"cannot open the studies: " + std::string(sqlite3_errstr(opened)), {}, {}}, path));
  }
  Result<bool> prepared = prepare(file);
  if (!prepared) return tl::make_unexpected(located(std::move(prepared).error(), path));
  sqlite3_busy_timeout(file, kWait_ms);
  studies.main_ = identity_of(path);
  studies.log_ = identity_of(log_of(path));
  return studies;
}

Result<bool> Studies::present() {
  if (file_ && identity_of(path_) == main_ && identity_of(log_of(path_)) == log_) return true;
  const FileIdentity there = identity_of(path_);
  Result<bool> mended = !file_ || (there != FileIdentity{} && there != main_) ? take_over() : write_anew();
  if (mended) return true;
  // The message's beginning tells that it was the storage.
  Error error = std::move(mended).error();
  if (error.message.rfind("studies: ", 0) != 0) error.message = "studies: " + error.message;
  error.pos.file = path_;
  if (file_) error.notes = {"the file was deleted or replaced while the server ran; what was saved is still held by the server: put the file right before the server ends"};
  return tl::make_unexpected(std::move(error));
}

/// The file or its log was deleted or moved away. What is open still has all: it goes to a new file at the same path.
Result<bool> Studies::write_anew() {
  std::error_code code;
  std::filesystem::create_directories(directory_of(path_), code);
  const std::string anew = path_ + ".new";
  std::filesystem::remove(anew, code);
  {
    Statement copy(file_.get(), "VACUUM INTO ?");  // ends before its database is closed below
    copy.bind(anew).next();
    if (copy.failed()) return copy.failure();
  }
  synchronise(anew);
  // The old log must not be taken for the new file's.
  std::filesystem::remove(log_of(path_), code);
  std::filesystem::remove(path_ + "-shm", code);
  std::filesystem::rename(anew, path_, code);
  if (code) return fail("studies: cannot write the file anew: " + code.message());
  synchronise(directory_of(path_));
  TRY_INTO(Studies opened, open(path_));
  *this = std::move(opened);
  return true;
}

/// Another file of studies stands at the path: it is used from now on. Studies that only the old one had are added.
Result<bool> Studies::take_over() {
  // A log that the old file left is not the new one's: SQLite would lay it over whatever it finds.
  if (file_ && identity_of(log_of(path_)) == log_) {
    std::error_code code;
    std::filesystem::remove(log_of(path_), code);
    std::filesystem::remove(path_ + "-shm", code);
  }
  TRY_INTO(Studies opened, open(path_));
  if (file_) {
    Statement rows(file_.get(), "SELECT id, name, document, revision, created_s, changed_s FROM studies");
    TRY_INTO([[maybe_unused]] const bool begun, execute(opened.file_.get(), "BEGIN IMMEDIATE"));
    while (rows.next()) {
      Statement insert(opened.file_.get(), "INSERT OR IGNORE INTO studies VALUES(?, ?, ?, ?, ?, ?)");
      insert.bind(rows.text(0)).bind(rows.text(1)).bind(rows.text(2)).bind(rows.number(3)).bind(rows.number(4)).bind(rows.number(5)).next();
      if (insert.failed()) return insert.failure();
    }
    if (rows.failed()) return rows.failure();
    TRY_INTO([[maybe_unused]] const bool ended, execute(opened.file_.get(), "COMMIT"));
  }
  *this = std::move(opened);
  return true;
}

Result<std::vector<StudyHead>> Studies::list() {
  TRY_INTO([[maybe_unused]] const bool ready, present());
  const std::string sql = std::string(kHead) + " FROM studies ORDER BY changed_s DESC, id";
  Statement rows(file_.get(), sql.c_str());
  std::vector<StudyHead> out;
  while (rows.next()) out.push_back(head_of(rows));
  if (rows.failed()) return rows.failure();
  return out;
}

Result<std::optional<SavedStudy>> Studies::find(const std::string& id) {
  TRY_INTO([[maybe_unused]] const bool ready, present());
  const std::string sql = std::string(kHead) + ", document FROM studies WHERE id = ?";
  Statement row(file_.get(), sql.c_str());
  if (row.bind(id).next()) return SavedStudy{head_of(row), row.text(6)};
  if (row.failed()) return row.failure();
  return std::nullopt;
}

Result<StudyHead> Studies::add(const std::string& name, const std::string& document) {
  TRY_INTO([[maybe_unused]] const bool named, check_name(name));
  TRY_INTO([[maybe_unused]] const bool ready, present());
  TRY_INTO(const std::int64_t count, one_number(file_.get(), "SELECT count(*) FROM studies"));
  if (count >= kMostStudies) return fail("10,000 studies are saved already", {}, {"delete some"});
  const std::int64_t now = std::time(nullptr);
  TRY_INTO(const std::string id, new_id());
  Statement insert(file_.get(), "INSERT INTO studies VALUES(?, ?, ?, 1, ?, ?)");
  insert.bind(id).bind(name).bind(document).bind(now).bind(now).next();
  if (insert.failed()) return insert.failure();
  return StudyHead{id, name, 1, now, now, static_cast<std::int64_t>(document.size())};
}

Result<Studies::Changed> Studies::replace(const std::string& id, const std::string& name, const std::string& document,
                                          std::optional<std::int64_t> revision) {
  TRY_INTO([[maybe_unused]] const bool named, check_name(name));
  TRY_INTO([[maybe_unused]] const bool ready, present());
  // One statement both checks and writes, so that no other writer comes between.
  Statement update(file_.get(),
                   "UPDATE studies SET name = ?, document = ?, revision = revision + 1, changed_s = ? WHERE id = ? AND (? < 0 OR revision = ?)");
  const std::int64_t expected = revision.value_or(-1);
  update.bind(name).bind(document).bind(static_cast<std::int64_t>(std::time(nullptr))).bind(id).bind(expected).bind(expected).next();
  if (update.failed()) return update.failure();
  const bool changed = sqlite3_changes(file_.get()) > 0;
  TRY_INTO(const std::optional<SavedStudy> now, find(id));
  if (!now) return Changed{};
  return Changed{changed ? Change::kDone : Change::kConflict, now->head};
}

Result<bool> Studies::remove(const std::string& id) {
  TRY_INTO([[maybe_unused]] const bool ready, present());
  Statement statement(file_.get(), "DELETE FROM studies WHERE id = ?");
  statement.bind(id).next();
  if (statement.failed()) return statement.failure();
  return sqlite3_changes(file_.get()) > 0;
}

std::string usual_studies_file() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  std::string folder = data != nullptr && data[0] == '/' ? data : std::string(home == nullptr ? "." : home) + "/.local/share";
  return folder + "/chokepoint/studies.sqlite";
}

}  // namespace chokepoint::service
