// SPDX-License-Identifier: Apache-2.0
#include "csv_number.hpp"

#include <gtest/gtest.h>

namespace chokepoint::validate {
namespace {

TEST(NumberHint, SaysWhatToWriteForEachWayOfRetyping) {
  EXPECT_EQ(number_hint("12,5"), "write 12.5 with a decimal point");
  EXPECT_EQ(number_hint("0,125"), "write 0.125 with a decimal point");
  EXPECT_EQ(number_hint("1,234"), "write 1234 if the comma parts thousands, 1.234 if it is a decimal mark");
  EXPECT_EQ(number_hint("1,234,567"), "write 1234567 without separators");
  EXPECT_EQ(number_hint("1 234"), "write 1234 without blanks or marks");
  EXPECT_EQ(number_hint("1\xC2\xA0" "234"), "write 1234 without blanks or marks");
  EXPECT_EQ(number_hint("1'234.5"), "write 1234.5 without blanks or marks");
  EXPECT_EQ(number_hint("1.2e"), "the exponent is missing");
  EXPECT_EQ(number_hint("45 %"), "write the share 0.45");
  EXPECT_EQ(number_hint("1O24"), "letters in place of digits? write 1024");
  EXPECT_EQ(number_hint("80 GiB"), "write the number alone, in the unit of the column");
  EXPECT_EQ(number_hint("4k"), "write the number alone, in the unit of the column");
  EXPECT_EQ(number_hint("~3.5"), "write the number alone, and that it is approximate in the notes");
  EXPECT_EQ(number_hint("n/a"), "leave the field empty where the figure is not known");
}

TEST(NumberHint, IsSilentWhereNothingIsBetterThanANumber) {
  EXPECT_EQ(number_hint(""), "");
  EXPECT_EQ(number_hint("full"), "");
  EXPECT_EQ(number_hint("1.2.3"), "");
  EXPECT_EQ(number_hint(","), "");
}

TEST(Quoted, HidesControlCharactersAndCutsLongText) {
  EXPECT_EQ(in_quotes("a\x1b[31m"), "'a?[31m'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(40, 'x') + "...'");
}

}  // namespace
}  // namespace chokepoint::validate
