package layout

// rowNouns are the singular and plural names of a grouping's rows.
var rowNouns = map[string][2]string{"site": {"line", "lines"}, "inner": {"line", "lines"}, "line": {"line", "lines"},
	"module": {"module", "modules"}, "tag": {"tag", "tags"}, "category": {"category", "categories"},
	"library": {"library", "libraries"}, "operator": {"operator", "operators"}, "thread": {"thread", "threads"},
	"function": {"function", "functions"}, "file": {"file", "files"}}

// KeyName is the name of a grouping's key in tables: for sets of rules, including the absence of a category.
func KeyName(by, key string) string {
	if _, known := rowNouns[by]; known && by != "category" {
		return key
	}
	return CategoryWord(key)
}

// MoreRows names the rows of a grouping that a table joins at its end: "36 more lines".
func MoreRows(by string, count int) string {
	noun, known := rowNouns[by]
	if !known {
		noun = [2]string{"row", "rows"}
	}
	return Plural(uint64(count), "more "+noun[0], "more "+noun[1])
}

// Times counts repetitions: "once", "twice", "3 times".
func Times(n uint64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Count(n) + " times"
}
