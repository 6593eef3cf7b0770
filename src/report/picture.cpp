// SPDX-License-Identifier: Apache-2.0
// The functions of librsvg 2.52 and later and of cairo that draw a document; their handles are only ever pointers to us,
// so no header is needed. dlsym finds cairo's and GLib's functions through the libraries that librsvg itself needs.
#include <chokepoint/report/picture.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace chokepoint::report {

namespace {

constexpr int kArgb32 = 0;              // enum cairo_format_t
constexpr int kCairoSuccess = 0;        // enum cairo_status_t
constexpr double kLongestSide = 16384;  ///< cairo's images end at 32767 pixels a side
constexpr double kMostPixels = 64e6;    ///< 256 MB while it is drawn

struct GError {
  unsigned int domain;
  int code;
  char* message;
};

struct RsvgRectangle {
  double x, y, width, height;
};

struct Renderer {
  void* (*from_data)(const unsigned char*, std::size_t, GError**) = nullptr;
  int (*size_of)(void*, double*, double*) = nullptr;
  int (*render)(void*, void*, const RsvgRectangle*, GError**) = nullptr;
  void (*unref)(void*) = nullptr;
  void (*free_error)(GError*) = nullptr;
  void* (*surface)(int, int, int) = nullptr;
  int (*surface_status)(void*) = nullptr;
  void (*destroy_surface)(void*) = nullptr;
  void* (*context)(void*) = nullptr;
  void (*destroy_context)(void*) = nullptr;
  void (*colour)(void*, double, double, double) = nullptr;
  void (*paint)(void*) = nullptr;
  int (*write)(void*, int (*)(void*, const unsigned char*, unsigned int), void*) = nullptr;
};

Result<Renderer> open_renderer() {
  // Never closed: GLib's types stay registered for the life of the process.
  void* library = ::dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
  const std::string mend = "install librsvg (Debian, Ubuntu: librsvg2-2), or ask for an .svg file";
  if (library == nullptr) return fail("PNG pictures are drawn by librsvg, which is not installed here", {}, {mend});
  Renderer r;
  bool whole = true;
  const auto find = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(library, name));
    whole = whole && into != nullptr;
  };
  find(r.from_data, "rsvg_handle_new_from_data");
  find(r.size_of, "rsvg_handle_get_intrinsic_size_in_pixels");
  find(r.render, "rsvg_handle_render_document");
  find(r.unref, "g_object_unref");
  find(r.free_error, "g_error_free");
  find(r.surface, "cairo_image_surface_create");
  find(r.surface_status, "cairo_surface_status");
  find(r.destroy_surface, "cairo_surface_destroy");
  find(r.context, "cairo_create");
  find(r.destroy_context, "cairo_destroy");
  find(r.colour, "cairo_set_source_rgb");
  find(r.paint, "cairo_paint");
  find(r.write, "cairo_surface_write_to_png_stream");
  if (!whole) return fail("PNG pictures need librsvg 2.52 or later, found an older one", {}, {mend});
  return r;
}

/// Colours that follow a page's scheme, "var(--w-ink,#202124)", as they are without a page: librsvg knows no variables.
std::string without_variables(std::string_view svg) {
  std::string out;
  out.reserve(svg.size());
  for (std::size_t at = 0; at < svg.size();) {
    const std::size_t found = svg.find("var(--", at);
    const std::size_t comma = svg.find(',', std::min(found, svg.size()));
    const std::size_t close = svg.find(')', std::min(comma, svg.size()));
    if (found == std::string_view::npos || close == std::string_view::npos) {
      out += svg.substr(at);
      break;
    }
    out += svg.substr(at, found - at);
    out += svg.substr(comma + 1, close - comma - 1);
    at = close + 1;
  }
  return out;
}

tl::unexpected<Error> undrawn(const Renderer& r, GError* error) {
  std::string message = "librsvg cannot draw the picture";
  if (error != nullptr) {
    message += ": " + std::string(error->message);
    r.free_error(error);
  }
  return fail(message);
}

int append(void* into, const unsigned char* data, unsigned int size) {
  static_cast<std::string*>(into)->append(reinterpret_cast<const char*>(data), size);
  return kCairoSuccess;
}

}  // namespace

Result<std::string> png_of(std::string_view svg) {
  TRY_INTO(const Renderer r, open_renderer());
  const std::string plain = without_variables(svg);
  GError* error = nullptr;
  const std::unique_ptr<void, void (*)(void*)> picture(
      r.from_data(reinterpret_cast<const unsigned char*>(plain.data()), plain.size(), &error), r.unref);
  if (!picture) return undrawn(r, error);
  double width = 0;
  double height = 0;
  if (r.size_of(picture.get(), &width, &height) == 0 || !(width >= 1 && height >= 1)) return undrawn(r, nullptr);
  const double scale = std::min({kPixelsPerUnit, kLongestSide / std::max(width, height), std::sqrt(kMostPixels / (width * height))});
  const RsvgRectangle place{0, 0, std::max(1.0, std::round(width * scale)), std::max(1.0, std::round(height * scale))};
  const std::unique_ptr<void, void (*)(void*)> surface(
      r.surface(kArgb32, static_cast<int>(place.width), static_cast<int>(place.height)), r.destroy_surface);
  if (r.surface_status(surface.get()) != kCairoSuccess) return fail("no memory for the picture");
  const std::unique_ptr<void, void (*)(void*)> context(r.context(surface.get()), r.destroy_context);
  r.colour(context.get(), 1, 1, 1);
  r.paint(context.get());
  if (r.render(picture.get(), context.get(), &place, &error) == 0) return undrawn(r, error);
  std::string png;
  if (r.write(surface.get(), append, &png) != kCairoSuccess) return fail("cairo cannot write the picture as PNG");
  return png;
}

Result<std::string> picture_for(std::string_view path, std::string svg) {
  constexpr std::string_view kEnd = ".png";
  if (path.size() <= kEnd.size() || path.substr(path.size() - kEnd.size()) != kEnd) return svg;
  return png_of(svg);
}

}  // namespace chokepoint::report
