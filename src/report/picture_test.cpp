// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/picture.hpp>

#include <array>
#include <chokepoint/report/wiring_view.hpp>
#include <chokepoint/wiring/wiring.hpp>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <zlib.h>

// What fontconfig keeps for the life of a process is no leak of the program's; the leak sanitizer asks here.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }

namespace chokepoint::report {
namespace {

struct Pixels {
  int width = 0;
  int height = 0;
  std::size_t channels = 0;
  std::vector<unsigned char> bytes;
  std::array<int, 3> at(int x, int y) const {
    const std::size_t i = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * channels;
    return {bytes[i], bytes[i + 1], bytes[i + 2]};
  }
  std::size_t colours() const {
    std::set<std::array<int, 3>> seen;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) seen.insert(at(x, y));
    return seen.size();
  }
};

std::uint32_t number(std::string_view png, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png[at + i]);
  return value;
}

/// The prediction of one byte from its neighbours (PNG specification, section 9).
int predicted(int filter, int left, int up, int corner) {
  const int p = left + up - corner;
  const int nearest = std::abs(p - left) <= std::abs(p - up) && std::abs(p - left) <= std::abs(p - corner) ? left
                      : std::abs(p - up) <= std::abs(p - corner)                                            ? up
                                                                                                            : corner;
  const std::array<int, 5> by_filter{0, left, up, (left + up) / 2, nearest};
  return by_filter.at(static_cast<std::size_t>(filter));
}

/// 8-bit RGB or RGBA without interlace, which is what cairo writes.
Pixels decoded(const std::string& png) {
  Pixels out;
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  out.width = static_cast<int>(number(png, 16));
  out.height = static_cast<int>(number(png, 20));
  EXPECT_EQ(png[24], 8);
  out.channels = png[25] == 6 ? 4 : 3;
  std::string packed;
  for (std::size_t at = 8; at + 12 <= png.size(); at += 12 + number(png, at))
    if (png.substr(at + 4, 4) == "IDAT") packed += png.substr(at + 8, number(png, at));
  const std::size_t row = static_cast<std::size_t>(out.width) * out.channels;
  std::vector<unsigned char> raw((row + 1) * static_cast<std::size_t>(out.height));
  uLongf size = raw.size();
  EXPECT_EQ(uncompress(raw.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()), Z_OK);
  EXPECT_EQ(size, raw.size());
  out.bytes.resize(row * static_cast<std::size_t>(out.height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(out.height); ++y) {
    for (std::size_t x = 0; x < row; ++x) {
      const int left = x >= out.channels ? out.bytes[y * row + x - out.channels] : 0;
      const int up = y > 0 ? out.bytes[(y - 1) * row + x] : 0;
      const int corner = x >= out.channels && y > 0 ? out.bytes[(y - 1) * row + x - out.channels] : 0;
      const int value = raw[y * (row + 1) + 1 + x] + predicted(raw[y * (row + 1)], left, up, corner);
      out.bytes[y * row + x] = static_cast<unsigned char>(value);
    }
  }
  return out;
}

constexpr const char* kSmall =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" viewBox=\"0 0 40 20\">"
    "<style>rect{fill:var(--a,#ff8000)}</style><rect width=\"20\" height=\"20\"/></svg>";

bool absent(const Result<std::string>& png) { return !png && png.error().message.find("not installed") != std::string::npos; }

TEST(Picture, OtherNamesGetTheSvgItself) {
  EXPECT_EQ(picture_for("a.svg", "<svg/>").value(), "<svg/>");
  EXPECT_EQ(picture_for("-", "<svg/>").value(), "<svg/>");
  EXPECT_EQ(picture_for(".png", "<svg/>").value(), "<svg/>");
}

TEST(Picture, PngHasTwoPixelsAUnitAndColoursWithoutVariables) {
  const Result<std::string> png = picture_for("a.png", kSmall);
  if (absent(png)) GTEST_SKIP() << "SKIPPED: no librsvg here, PNG pictures are not tested";
  ASSERT_TRUE(png) << format(png.error());
  const Pixels pixels = decoded(*png);
  EXPECT_EQ(pixels.width, 80);
  EXPECT_EQ(pixels.height, 40);
  EXPECT_EQ(pixels.at(20, 20), (std::array<int, 3>{255, 128, 0}));
  EXPECT_EQ(pixels.at(60, 20), (std::array<int, 3>{255, 255, 255}));
}

TEST(Picture, HugeOnesGetFewerPixels) {
  const Result<std::string> png = png_of("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000000\" height=\"20\"><rect width=\"9\" height=\"9\"/></svg>");
  if (absent(png)) GTEST_SKIP() << "SKIPPED: no librsvg here, PNG pictures are not tested";
  ASSERT_TRUE(png) << format(png.error());
  EXPECT_EQ(number(*png, 16), 16384u);
}

TEST(Picture, WhatIsNoSvgIsRefused) {
  const Result<std::string> png = png_of("no picture");
  if (absent(png)) GTEST_SKIP() << "SKIPPED: no librsvg here, PNG pictures are not tested";
  ASSERT_FALSE(png);
  EXPECT_EQ(png.error().message.rfind("librsvg cannot draw the picture", 0), 0u);
}

TEST(Picture, AWiringIsDrawnInManyColours) {
  const Result<std::string> png = png_of(wiring_svg(wiring::build_cluster("dgx-h100", 1).value()));
  if (absent(png)) GTEST_SKIP() << "SKIPPED: no librsvg here, PNG pictures are not tested";
  ASSERT_TRUE(png) << format(png.error());
  const Pixels pixels = decoded(*png);
  EXPECT_GT(pixels.width, 1000);
  EXPECT_GT(pixels.colours(), 20u);
}

}  // namespace
}  // namespace chokepoint::report
