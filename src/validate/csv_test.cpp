// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

#include <gmock/gmock.h>

namespace chokepoint::validate {
namespace {

using testing::HasSubstr;

CsvTable parsed(std::string_view text) {
  auto table = CsvTable::parse(text, "t.csv");
  EXPECT_TRUE(table) << (table ? "" : format(table.error()));
  return table.value_or(CsvTable{});
}

TEST(Csv, ReadsQuotedCommasQuotesAndLineBreaks) {
  const CsvTable table = parsed("a,b\n\"x, y\",\"say \"\"hi\"\"\nthere\"\n");
  ASSERT_EQ(table.rows().size(), 1u);
  EXPECT_EQ(table.text(table.rows()[0], "a"), "x, y");
  EXPECT_EQ(table.text(table.rows()[0], "b"), "say \"hi\"\nthere");
}

TEST(Csv, ReadsWindowsLineEndsAByteOrderMarkAndNoFinalNewline) {
  const CsvTable table = parsed("\xEF\xBB\xBF" "a,b\r\n1,2\r\n\r\n3,4");
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.header()[0], "a");
  EXPECT_EQ(table.text(table.rows()[1], "b"), "4");
  EXPECT_EQ(table.rows()[1].number, 2);
  EXPECT_EQ(table.rows()[1].line, 4);
}

TEST(Csv, RefusesShortAndLongRowsAloneWithTheirLine) {
  const CsvTable table = parsed("a,b,c\n1,2\n1,2,3\n1,2,3,4\n");
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("2:1: the row has 2 fields, the header 3"));
  EXPECT_EQ(table.rows()[1].refused, "");
  EXPECT_THAT(table.rows()[2].refused, HasSubstr("4:1: the row has 4 fields"));
}

TEST(Csv, RefusesARepeatedHeader) {
  const CsvTable table = parsed("a,b\n1,2\na,b\n3,4\n");
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_THAT(table.rows()[1].refused, HasSubstr("3:1: the header is repeated"));
  EXPECT_EQ(table.text(table.rows()[2], "a"), "3");
}

TEST(Csv, AnUnclosedQuoteCostsOneRow) {
  const CsvTable table = parsed("a,b\n1,\"open\n3,4\n5,6\n");
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("2:3: this quote is never closed"));
  EXPECT_EQ(table.text(table.rows()[1], "b"), "4");
  EXPECT_EQ(table.rows()[2].line, 4);
}

TEST(Csv, TextAfterAClosingQuoteCostsOneRow) {
  const CsvTable table = parsed("a,b\n\"1\"x,2\n3,4\n");
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("2:4: found 'x' after the closing quote"));
  EXPECT_EQ(table.text(table.rows()[1], "a"), "3");
}

TEST(Csv, NumbersSayWhereTheyAreWrong) {
  const CsvTable table = parsed("a,b\n1,\n 2.5 ,\"1O24\"\n");
  EXPECT_EQ(table.number(table.rows()[0], "a").value().value(), 1.0);
  EXPECT_FALSE(table.number(table.rows()[0], "b").value().has_value());
  EXPECT_EQ(table.number(table.rows()[1], "a").value().value(), 2.5);
  EXPECT_FALSE(table.number(table.rows()[0], "absent").value().has_value());
  const auto wrong = table.number(table.rows()[1], "b");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(format(wrong.error()), HasSubstr("t.csv:3:7: error: b is '1O24', expected a number"));
}

TEST(Csv, AHeaderWithARepeatedNameIsAnError) {
  const auto table = CsvTable::parse("a,b,a\n1,2,3\n", "t.csv");
  ASSERT_FALSE(table);
  EXPECT_THAT(format(table.error()), HasSubstr("t.csv:1:5: error: column 'a' stands twice"));
}

TEST(Csv, AnEmptyFileAndATableWithoutCommasAreErrors) {
  EXPECT_FALSE(CsvTable::parse("", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("\r\n\n", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("a;b;c\n1;2;3\n", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("\"a,b\n1,2\n", "t.csv"));
}

TEST(Csv, ComparesTheHeaderWithTheKnownColumns) {
  const CsvTable table = parsed("seq_len,micro_bach\n1,2\n");
  const std::vector<std::string> known = {"seq_len", "micro_batch"};
  const auto notes = table.compare_header(known);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[0].text, HasSubstr("did you mean 'micro_batch'"));
  EXPECT_EQ(notes[0].pos.column, 9);
  EXPECT_THAT(notes[1].text, HasSubstr("column 'micro_batch' is missing"));
}

}  // namespace
}  // namespace chokepoint::validate
