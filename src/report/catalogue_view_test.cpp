// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/catalogue_view.hpp>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace chokepoint::report {
namespace {

using testing::HasSubstr;

const Style kPlain{false, 100};

TEST(CatalogueView, TablesHoldOneLinePerEntry) {
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  EXPECT_EQ(lines(models_table(model::models(), kPlain)), static_cast<std::ptrdiff_t>(model::models().size()) + 1);
  EXPECT_EQ(lines(accelerators_table(hardware::accelerators(), kPlain)), static_cast<std::ptrdiff_t>(hardware::accelerators().size()) + 2);
}

TEST(CatalogueView, OneEntryShowsItsFiguresAndSource) {
  const std::string text = accelerator_text(*hardware::find_accelerator("h100"), kPlain);
  EXPECT_THAT(text, HasSubstr("18 x 25.0 GB/s, 450 GB/s together one way"));
  EXPECT_THAT(text, HasSubstr("bf16 989 TFLOP/s"));
  EXPECT_THAT(text, HasSubstr("whitepaper"));
  EXPECT_THAT(model_text(*model::find_model("llama-3-8b"), kPlain), HasSubstr("8,030,261,248"));
  EXPECT_THAT(clusters_text({{*hardware::find_host("aws-p4d")}, {}, {}}, kPlain), HasSubstr("4 x efa-100g"));
}

TEST(CatalogueView, LongValuesWrapAtTheWidth) {
  const std::string text = model_text(*model::find_model("deepseek-v3"), Style{false, 60});
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; start = end + 1, end = text.find('\n', start)) {
    EXPECT_LE(display_width(text.substr(start, end - start)), 60);
  }
}

TEST(CatalogueView, JsonIsInSiUnits) {
  const auto parts = nlohmann::json::parse(accelerators_json({*hardware::find_accelerator("a100-sxm4-80gb")}));
  EXPECT_EQ(parts["schema"], "chokepoint.accelerators/1");
  EXPECT_EQ(parts["accelerators"][0]["memory_bytes"], 80.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(parts["accelerators"][0]["peak_flops_per_s"]["bf16"], 312e12);
  EXPECT_FALSE(parts["accelerators"][0]["peak_flops_per_s"].contains("fp8"));
  const auto models = nlohmann::json::parse(models_json({*model::find_model("mixtral-8x7b")}));
  EXPECT_EQ(models["models"][0]["parameters"], 46702792704.0);
  EXPECT_EQ(models["models"][0]["moe"]["top_k"], 2);
  const auto clusters = nlohmann::json::parse(clusters_json({{*hardware::find_host("p5")}, {}, {}}));
  EXPECT_EQ(clusters["hosts"][0]["nics"], 32);
}

}  // namespace
}  // namespace chokepoint::report
