package importer

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Numbers as other tools write them, besides digits with a point.
var (
	// thousands in groups of three, by any separator but the decimal one: 1,024 1'024 1 024,5 1.234.567
	grouped = regexp.MustCompile(`^([1-9][0-9]{0,2})((?:,[0-9]{3})+|(?:'[0-9]{3})+|(?: [0-9]{3})+|(?:\.[0-9]{3}){2,})` +
		`(?:[.,]([0-9]+))?$`)
	pointAndComma = regexp.MustCompile(`^([1-9][0-9]{0,2}(?:\.[0-9]{3})+),([0-9]+)$`) // 1.024,5
	decimalComma  = regexp.MustCompile(`^([0-9]+),([0-9]{1,2}|[0-9]{4,})$`)           // 3,5
	onePoint      = regexp.MustCompile(`^[1-9][0-9]{0,2}\.[0-9]{3}$`)                 // 1.024
	blanks        = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ", "\u2019", "'")
)

var errTwoNumbers = errors.New("the number can be read in two ways, with a decimal point or one between thousands")

// plainNumber writes a whole number of units, or one with decimals, as strconv reads it: with the separators of any
// country. A text that can be read in two ways is refused; one that is not a number is returned as it is.
func plainNumber(text string) (string, error) {
	text = strings.TrimSpace(blanks.Replace(text))
	if onePoint.MatchString(text) {
		return "", errTwoNumbers
	}
	if m := decimalComma.FindStringSubmatch(text); m != nil {
		return m[1] + "." + m[2], nil
	}
	if m := pointAndComma.FindStringSubmatch(text); m != nil {
		return strings.ReplaceAll(m[1], ".", "") + "." + m[2], nil
	}
	if m := grouped.FindStringSubmatch(text); m != nil {
		separator := m[2][:1]
		whole, decimals := m[1]+strings.ReplaceAll(m[2], separator, ""), m[3]
		if decimals == "" {
			return whole, nil
		}
		if strings.HasSuffix(text, separator+decimals) {
			return "", errTwoNumbers
		}
		return whole + "." + decimals, nil
	}
	return text, nil
}

// mebibytes reads a number of MiB, with or without the unit.
func mebibytes(text string) (bytes uint64, unit bool, err error) {
	text = strings.TrimSpace(text)
	text, unit = strings.CutSuffix(text, "MiB")
	text, err = plainNumber(text)
	if err != nil {
		return 0, unit, err
	}
	if _, wrong := strconv.ParseFloat(text, 64); wrong != nil {
		return 0, unit, errNoMebibytes
	}
	bytes, err = bytesOf(text, mebibyte)
	return bytes, unit, err
}

var errNoMebibytes = errors.New("the memory in use is not a number of MiB")
