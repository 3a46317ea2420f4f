package symbol

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// longName is how long a name may be before its template arguments are elided.
const longName = 60

// readable returns the displayed names of a linker's name: full, and with long template arguments elided.
func readable(linked string) (full, brief string) {
	linked = withoutClone(linked)
	full, err := demangle.ToString(linked, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(14))
	if err != nil {
		full = linked // C, or no name that anything mangled
	}
	return full, short(full)
}

// short is a name that was made readable, with long template arguments elided.
func short(full string) string {
	if len(full) <= longName {
		return full
	}
	return elideArguments(full)
}

// cloneSuffix is the suffix that compilers append to the name of a function that they copied or split.
var cloneSuffix = regexp.MustCompile(`(\.(cold|part\.\d+|isra\.\d+|constprop\.\d+|lto_priv\.\d+|llvm\.\d+|localalias|warm|unlikely\.?|\d+))+$`)

func withoutClone(name string) string {
	if strings.IndexByte(name, '.') <= 0 {
		return name
	}
	return cloneSuffix.ReplaceAllString(name, "")
}

// elideArguments replaces template arguments by three dots. Angle brackets at the start of a path are not arguments: <T
// as Trait>::f in Rust.
func elideArguments(name string) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		rest := name[i:]
		if depth == 0 && strings.HasPrefix(rest, "operator") && !partOfName(name, i-1) &&
			!partOfName(name, i+len("operator")) {
			length := len("operator") + operatorLength(rest[len("operator"):])
			out.WriteString(rest[:length])
			i += length - 1
			continue
		}
		switch c := name[i]; {
		case c == '<' && depth == 0 && (i == 0 || strings.IndexByte("(&*", name[i-1]) >= 0):
			end := closing(rest)
			out.WriteByte('<')
			out.WriteString(elideArguments(rest[1:end]))
			i += end - 1
		case c == '<':
			if depth == 0 {
				out.WriteString("<...>")
			}
			depth++
		case c == '>' && depth > 0 && name[i-1] != '-':
			depth--
		case depth == 0:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// operatorLength is the length of the symbols after "operator": those of comparisons and shifts would look like
// brackets.
func operatorLength(rest string) int {
	for _, symbols := range []string{"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "()"} {
		if strings.HasPrefix(rest, symbols) {
			return len(symbols)
		}
	}
	return 0
}

// closing returns the length of the bracketed text at the start of name.
func closing(name string) int {
	depth := 0
	for i := range len(name) {
		switch {
		case name[i] == '<':
			depth++
		case name[i] == '>' && (i == 0 || name[i-1] != '-'):
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(name)
}

func partOfName(name string, i int) bool {
	if i < 0 || i >= len(name) {
		return false
	}
	c := name[i]
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
