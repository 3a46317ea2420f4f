package trace

import (
	"math/bits"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// recorded lists the fields of every event kind as version 1 wrote them. Later versions may append kinds, and fields to
// a kind; what is here must stay, since files hold these numbers.
var recorded = []struct {
	kind   string
	fields string
}{
	{"none", ""},
	{"alloc",
		"seq time thread level api runtime mem device addr size stream status flags stack pystack tag allocated reserved handle"},
	{"free",
		"seq time thread level api runtime mem device addr size stream status flags stack pystack tag allocated reserved handle"},
	{"map", "seq time thread level api device addr size status flags stack pystack tag handle"},
	{"unmap", "seq time thread level api device addr size status flags stack pystack tag"},
	{"oom", "seq time thread level api device size flags stack pystack tag allocated reserved"},
	{"mark", "seq time thread flags tag name"},
	{"step", "seq time thread flags tag count"},
	{"epoch", "seq time thread flags tag count"},
	{"lost", "seq time thread flags count"},
	{"create", "seq time thread level api runtime device addr size status flags stack pystack tag object"},
	{"destroy", "seq time thread level api runtime device addr size status flags stack pystack tag object"},
	{"reserve", "seq time thread level api device addr size flags allocated object"},
	{"launch", "seq time thread level api runtime device addr size status flags stack pystack tag object"},
	{"sample", "seq time thread device size flags allocated reserved count name"},
	{"name", "seq time thread flags addr size handle category name"},
	{"wait", "seq time thread device addr size stream flags handle"},
	{"complete", "seq time thread flags handle"},
	{"emptycache", "seq time thread device flags stack pystack tag count"},
	{"ask", "seq time thread level api runtime device size status flags stack pystack tag allocated"},
	{"pool", "seq time thread device flags count pool"},
	{"setting", "seq time thread device flags name count"},
}

const recordedFields = "seq time thread level api runtime mem device addr size stream status flags stack pystack tag allocated reserved handle name count object category op opthread rest pool"

func TestSpecOnlyGrows(t *testing.T) {
	var names []string
	for _, f := range FieldSpecs {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got+" ", recordedFields+" ") {
		t.Errorf("fields are\n%s, which does not begin with\n%s", got, recordedFields)
	}
	for i, want := range recorded {
		if i >= len(EventSpecs) {
			t.Fatalf("kind %d (%s) is gone", i, want.kind)
		}
		spec := EventSpecs[i]
		var fields []string
		for _, f := range spec.Fields {
			fields = append(fields, FieldSpecs[f].Name)
		}
		if spec.Name != want.kind || !strings.HasPrefix(strings.Join(fields, " ")+" ", want.fields+" ") {
			t.Errorf("kind %d is %s %v, which does not begin with %s %s", i, spec.Name, fields, want.kind, want.fields)
		}
	}
	if len(EventSpecs) > len(recorded) {
		t.Error("a new event kind: append it to the recorded list")
	}
}

func TestSpecIsConsistent(t *testing.T) {
	if fieldCount > 64 {
		t.Fatal("a set of fields is 64 bits")
	}
	seen := make(map[string]bool)
	var used uint64
	for i, f := range FieldSpecs {
		if int(f.Field) != i || f.Doc == "" || !plainName(f.Name) || seen[f.Name] {
			t.Errorf("field %d: %+v", i, f)
		}
		seen[f.Name] = true
		// A predicted column uses fields that were decoded before it.
		if f.Encoding == EncodingSame && f.Field < FieldLevel || f.Encoding == EncodingAccount &&
			f.Field < FieldDevice ||
			f.Encoding == EncodingBalance && f.Field < FieldStatus {
			t.Errorf("field %s is predicted from fields that stand after it", f.Name)
		}
	}
	for i, e := range EncodingSpecs {
		if int(e.Encoding) != i || !plainName(e.Name) || e.Doc == "" {
			t.Errorf("encoding %d: %+v", i, e)
		}
	}
	words := map[string]bool{}
	for i, k := range EventSpecs {
		if int(k.Kind) != i || k.Doc == "" || !plainName(k.Name) || words[k.Name] || k.Since > FormatVersion {
			t.Errorf("kind %d: %+v", i, k)
		}
		words[k.Name] = true
		for _, f := range k.Fields {
			used |= 1 << f
		}
		if i > 0 && bits.OnesCount64(kindMasks[i]) != len(k.Fields) {
			t.Errorf("kind %s has a field twice", k.Name)
		}
		if i > 0 && kindMasks[i]&(1<<FieldSeq|1<<FieldTime|1<<FieldFlags) != 1<<FieldSeq|1<<FieldTime|1<<FieldFlags {
			t.Errorf("kind %s lacks seq, time or flags", k.Name)
		}
	}
	if used != knownFields {
		t.Errorf("fields that no kind has: %b", knownFields&^used)
	}
}

// A value fits a field where it comes back from an event as it was.
func TestFieldBits(t *testing.T) {
	for i, spec := range FieldSpecs {
		f := Field(i)
		for width := range 65 {
			for _, v := range []uint64{1<<width - 1, 1 << width, -(1 << width), ^uint64(1 << width)} {
				one, back := make([]Event, 1), []uint64{0}
				scatter([]uint64{v}, f, one)
				gather(back, f, one)
				if fits := fitsField(f, v); fits != (back[0] == v) || fits != allFit(f, []uint64{0, v, 0}) {
					t.Errorf("field %s: %#x fits: %v, and comes back as %#x", spec.Name, v, fits, back[0])
				}
			}
		}
	}
}

func plainName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLower(r) && r != '_' }) < 0
}

// Every field of Event but Kind has a column, so that nothing is lost silently when a field is added.
func TestEveryEventFieldIsWritten(t *testing.T) {
	event := reflect.TypeOf(Event{})
	if got, want := event.NumField()-1, int(fieldCount); got != want {
		t.Errorf("Event has %d fields besides Kind, FieldSpecs %d", got, want)
	}
	for i, f := range FieldSpecs {
		events := make([]Event, 1)
		if !scatter([]uint64{1}, Field(i), events) {
			t.Errorf("field %s does not take a 1", f.Name)
		}
		changed := 0
		for j := range event.NumField() {
			if !reflect.ValueOf(events[0]).Field(j).IsZero() {
				changed++
				if name := strings.ToLower(event.Field(j).Name); name != f.Name {
					t.Errorf("field %s sets Event.%s", f.Name, event.Field(j).Name)
				}
			}
		}
		value := make([]uint64, 1)
		if gather(value, Field(i), events); changed != 1 || value[0] != 1 {
			t.Errorf("field %s: %d members changed, read back %d", f.Name, changed, value[0])
		}
	}
}
