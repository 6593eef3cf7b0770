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
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("t.csv:2:1: the row has 2 fields, expected the 3 of the header; is it cut short?"));
  EXPECT_EQ(table.rows()[1].refused, "");
  EXPECT_THAT(table.rows()[2].refused, HasSubstr("t.csv:4:1: the row has 4 fields, expected the 3 of the header; a field that contains the separator"));
}

TEST(Csv, RefusesARepeatedHeader) {
  const CsvTable table = parsed("a,b\n1,2\na,b\n3,4\n");
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_THAT(table.rows()[1].refused, HasSubstr("t.csv:3:1: the header is repeated"));
  EXPECT_EQ(table.text(table.rows()[2], "a"), "3");
}

TEST(Csv, AnUnclosedQuoteCostsOneRow) {
  const CsvTable table = parsed("a,b\n1,\"open\n3,4\n5,6\n");
  ASSERT_EQ(table.rows().size(), 3u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("t.csv:2:3: this quote is never closed"));
  EXPECT_EQ(table.text(table.rows()[1], "b"), "4");
  EXPECT_EQ(table.rows()[2].line, 4);
}

TEST(Csv, TextAfterAClosingQuoteCostsOneRow) {
  const CsvTable table = parsed("a,b\n\"1\"x,2\n3,4\n");
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("t.csv:2:4: found 'x' after the closing quote"));
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
  EXPECT_FALSE(CsvTable::parse("a b c\n1 2 3\n", "t.csv"));
  EXPECT_FALSE(CsvTable::parse("\"a,b\n1,2\n", "t.csv"));
}

/// `text` in UTF-16, low byte first, with its mark.
std::string utf16(std::string_view text) {
  std::string out = "\xFF\xFE";
  for (const char c : text) out += {c, '\0'};
  return out;
}

TEST(Csv, ReadsUtf16WithItsMark) {
  const CsvTable table = parsed(utf16("a\tb\r\n1\t2\r\n") + std::string("3\0\t\0\x3D\xD8\x00\xDE\n\0", 10));
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.separator(), '\t');
  EXPECT_EQ(table.text(table.rows()[0], "b"), "2");
  EXPECT_EQ(table.text(table.rows()[1], "b"), "\xF0\x9F\x98\x80");  // U+1F600, a surrogate pair
}

TEST(Csv, NulBytesRefuseARowAndMakeABinaryHeaderAnError) {
  const CsvTable table = parsed(std::string_view("a,b\n1,2\0\n3,4\n", 13));
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.rows()[0].refused, "t.csv:2:3: found a NUL byte, expected text; save the table as plain text in UTF-8");
  EXPECT_EQ(table.text(table.rows()[1], "b"), "4");
  const auto binary = CsvTable::parse(std::string_view("a\0,\0b\0\n\0", 8), "t.csv");
  ASSERT_FALSE(binary);
  EXPECT_THAT(binary.error().message, HasSubstr("UTF-16 without its mark"));
}

TEST(Csv, SemicolonsAndTabsSeparateWhereTheHeaderHasNoComma) {
  const CsvTable table = parsed("a;b\n1,5;2\n");
  ASSERT_EQ(table.rows().size(), 1u);
  const auto number = table.number(table.rows()[0], "a");
  ASSERT_FALSE(number);
  EXPECT_EQ(one_line(number.error()), "t.csv:2:1: a is '1,5', expected a number; write 1.5 with a decimal point");
  const std::vector<std::string> known = {"a", "b"};
  EXPECT_THAT(table.compare_header(known).at(0).text, HasSubstr("semicolons"));
}

TEST(Csv, EmptyFieldsBeyondTheHeaderAndColumnsWithoutNamesAreHarmless) {
  const CsvTable table = parsed("a,b,,\n1,2,,,,\n");
  ASSERT_EQ(table.rows().size(), 1u);
  EXPECT_EQ(table.rows()[0].refused, "");
  EXPECT_EQ(table.text(table.rows()[0], "b"), "2");
}

TEST(Csv, LinesWithoutEndAreRefusedNotKept) {
  const std::string commas(3'000'000, ',');
  EXPECT_FALSE(CsvTable::parse(commas, "t.csv"));
  const CsvTable table = parsed("a,b\n1,2" + commas + "3\n4,5\n");
  ASSERT_EQ(table.rows().size(), 2u);
  EXPECT_EQ(table.rows()[0].cells.size(), 2u);
  EXPECT_THAT(table.rows()[0].refused, HasSubstr("the row has 3000002 fields"));
  EXPECT_EQ(table.text(table.rows()[1], "a"), "4");
  const CsvTable open = parsed("a,b\n1,\"" + std::string(600'000, 'x') + "\n4,5\n");
  EXPECT_THAT(open.rows()[0].refused, HasSubstr("never closed"));
  EXPECT_EQ(open.text(open.rows().back(), "a"), "4");
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
