package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Subject is what a gate measures: a figure such as peak, or the memory of an owner such as tag:kv_cache.
type Subject struct {
	Kind string // a name of subjectKinds
	Name string // of the owner; "" for figures
}

// String writes a subject as gates name it.
func (s Subject) String() string {
	if s.Name == "" {
		return s.Kind
	}
	return s.Kind + ":" + s.Name
}

// subjectKind is a row of the table of docs/ci.md.
type subjectKind struct {
	name  string
	owner bool // a name follows
	parse func(text string) (Amount, error)
	says  string
}

// subjectKinds are all subjects, in the order of the documentation.
var subjectKinds = []subjectKind{
	{"peak", false, parseBytes, "allocated bytes at their peak: the framework's blocks, or else CUDA memory"},
	{"requested", false, parseBytes, "what the program requested of these bytes, without the allocator's rounding"},
	{"tag", true, parseBytes, "the most that a tag and those below it held"},
	{"category", true, parseBytes, "the most that was for a purpose, such as Optimizer state"},
	{"module", true, parseBytes, "the most that a module and those below it held"},
	{"site", true, parseBytes, "the most that a place in the program held"},
	{"operator", true, parseBytes, "the most that an operator held"},
	{"library", true, parseBytes, "the most that a library held of CUDA memory outside the framework's allocator"},
	{"driver", false, parseBytes, "CUDA memory at its peak, of programs without a caching allocator"},
	{"pinned", false, parseBytes, "pinned host memory at its peak"},
	{"managed", false, parseBytes, "managed memory at its peak"},
	{"growth", false, parseRate, "how much memory grows up to the end of the run: in total, per step or per second"},
	{"rank-spread", false, parsePercent, "by how much the highest peak of the ranks exceeds the lowest"},
}

// SubjectNames lists what --max and --compare take, owners with a colon.
func SubjectNames() (list []string) {
	for _, k := range subjectKinds {
		if k.owner {
			list = append(list, k.name+":")
		} else {
			list = append(list, k.name)
		}
	}
	return list
}

func kindOf(name string) *subjectKind {
	if i := slices.IndexFunc(subjectKinds, func(k subjectKind) bool { return k.name == name }); i >= 0 {
		return &subjectKinds[i]
	}
	return nil
}

// parseSubject reads peak or tag:NAME.
func parseSubject(text string) (Subject, *subjectKind, error) {
	kind, name, named := strings.Cut(strings.TrimSpace(text), ":")
	k := kindOf(kind)
	switch {
	case kind == "reserved":
		return Subject{}, nil, errReserved
	case k == nil:
		return Subject{}, nil, fmt.Errorf("unknown gate %q; %s", kind, choose(kind, SubjectNames(), "choose from"))
	case k.owner && strings.TrimSpace(name) == "":
		return Subject{}, nil, fmt.Errorf("%s needs a name, such as %s", kind, example(kind))
	case !k.owner && named:
		return Subject{}, nil, fmt.Errorf("%s takes no name; leave out %q", kind, ":"+name)
	}
	return Subject{kind, strings.TrimSpace(name)}, k, nil
}

func example(kind string) string {
	names := map[string]string{"tag": "kv_cache", "category": "'Optimizer state'", "module": "'model.layers.*'",
		"site": "train.py:97", "operator": "aten::mm", "library": "libnccl"}
	return kind + ":" + names[kind]
}

// matcher returns a function that reports whether a key of a grouping belongs to the subject. A star stands for any
// text, a question mark for any character. A name without them also means what is below a tag or a module, a library
// without its version, and a place without its function.
func (s Subject) matcher() func(key string) bool {
	name := s.Name
	if strings.ContainsAny(name, "*?") {
		pattern := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(name))
		if s.Kind == "category" {
			pattern = "(?i)" + pattern
		}
		if re, err := regexp.Compile("(?s)^(?:" + pattern + ")$"); err == nil {
			return re.MatchString
		}
	}
	return func(key string) bool {
		if key == name {
			return true
		}
		switch s.Kind {
		case "tag":
			return strings.HasPrefix(key, name+"/") || strings.HasPrefix(key, name+".")
		case "module":
			return strings.HasPrefix(key, name+".")
		case "library":
			stem, _, _ := strings.Cut(key, ".so")
			return stem == name
		case "site":
			return strings.HasPrefix(key, name+" ")
		case "category":
			return strings.EqualFold(key, name)
		}
		return false
	}
}

// namesShown is how many names a message lists.
const namesShown = 6

// choose helps with a name that does not exist: the nearest one, or the first of all.
func choose(wrong string, names []string, list string) string {
	if near := nearest(wrong, names); near != "" {
		return "did you mean " + near + "?"
	}
	more := ""
	if n := len(names) - namesShown; n > 0 && list != "choose from" {
		names, more = names[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	return list + " " + strings.Join(names, ", ") + more
}

// longestName bounds the names among which nearest looks: the work grows with the square of their length.
const longestName = 200

// nearest returns the name with the fewest differences, "" if all have many.
func nearest(wrong string, names []string) string {
	best, least := "", max(2, len(wrong)/3)+1
	for _, name := range names {
		if len(wrong) > longestName || len(name) > longestName {
			continue
		}
		if n := distance(strings.ToLower(wrong), strings.ToLower(strings.TrimSuffix(name, ":"))); n < least {
			best, least = name, n
		}
	}
	return best
}

// distance counts the characters to add, remove, replace or swap with a neighbour.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	next := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			next[j+1] = min(row[j]+same, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
