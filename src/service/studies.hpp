// SPDX-License-Identifier: Apache-2.0
#pragma once
// Saved studies: a name and a JSON document each, in one SQLite file. A study that was saved is on the disk: write-ahead
// log with full synchronisation, so neither a kill nor a power cut takes it back. A file that is deleted or moved away while
// it is open is written anew from what is still open; another one in its place is taken, and gets what it lacks.
#include <chokepoint/base/result.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct sqlite3;

namespace chokepoint::service {

struct StudyHead {
  std::string id;
  std::string name;
  std::int64_t revision = 1;
  std::int64_t created_s = 0;  ///< seconds since 1970, UTC
  std::int64_t changed_s = 0;
  std::int64_t size_bytes = 0;
};

struct SavedStudy {
  StudyHead head;
  std::string document;  ///< JSON
};

/// A file as the disk knows it: another one under the same name differs. Zeros: there is none.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t number = 0;
  bool operator==(const FileIdentity&) const = default;
};

class Studies {
 public:
  /// Begins the message when another program holds the file: nothing was changed, trying again helps.
  static constexpr const char* kLocked = "studies: another program holds the file";

  /// Makes the file and its folder where they are missing.
  static Result<Studies> open(const std::string& path);

  /// Newest first.
  Result<std::vector<StudyHead>> list();
  Result<std::optional<SavedStudy>> find(const std::string& id);
  Result<StudyHead> add(const std::string& name, const std::string& document);

  enum class Change { kDone, kMissing, kConflict };
  struct Changed {
    Change change = Change::kMissing;
    StudyHead head;
  };
  /// With `revision`, only when the saved study still has it: two tabs do not overwrite each other unknowingly.
  Result<Changed> replace(const std::string& id, const std::string& name, const std::string& document,
                          std::optional<std::int64_t> revision);
  Result<bool> remove(const std::string& id);

 private:
  struct Close {
    void operator()(sqlite3* file) const;
  };
  Studies(std::string path, sqlite3* file) : path_(std::move(path)), file_(file) {}
  /// Whether what is open is what stands at the path; puts it right where it is not.
  Result<bool> present();
  Result<bool> write_anew();
  Result<bool> take_over();

  std::string path_;
  std::unique_ptr<sqlite3, Close> file_;
  FileIdentity main_;  ///< of the open file
  FileIdentity log_;   ///< of its write-ahead log
};

/// Where studies are kept without a word about it: $XDG_DATA_HOME or ~/.local/share.
std::string usual_studies_file();

}  // namespace chokepoint::service
