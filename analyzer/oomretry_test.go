package analyzer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/oom"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/textform"
	"memtrace/trace"
)

// TestOOMRetriesAreOneRow: failures belong together until a step ends, and nothing that came before the last of them
// counts.
func TestOOMRetriesAreOneRow(t *testing.T) {
	const held = "0 1 take 0x10000000 900\n"
	steps := strings.Builder{}
	for i := range 9 {
		fmt.Fprintf(&steps, "%d 1 step %d\n", 11+i, i)
	}
	for name, c := range map[string]struct {
		lines string
		want  []string // failed first last as-much step, sizes in MiB and times in ms
	}{
		"it dies of it": {held + "5 1 oom 650\n", []string{"1 650 650 0 0"}},
		"smaller and smaller": {held +
			"5 1 oom 650\n300 1 oom 320\n600 1 block 0x10000000 160 4\n601 1 step 1\n700 1 step 2\n",
			[]string{"2 650 320 0 700"}},
		"as much, later": {held +
			"5 1 oom 650\n300 1 block 0x10000000 100 4\n310 1 block 0x20000000 700 4\n", []string{"1 650 650 310 0"}},
		"a step that began is no end": {held + "5 1 oom 650\n6 1 step 1\n7 1 oom 600\n", []string{"2 650 600 0 0"}},
		"in its second step": {held +
			"5 1 oom 650\n10 1 step 1\n20 1 step 2\n30 1 oom 500\n40 1 step 3\n50 1 step 4\n",
			[]string{"2 650 500 0 50"}},
		"twice": {held + "5 1 oom 650\n" + steps.String() +
			"30 1 oom 500\n40 1 step 3\n50 1 step 4\n", []string{"1 650 650 0 12", "1 500 500 0 50"}},
		"granted between failures": {held + "5 1 oom 650\n6 1 block 0x10000000 700 4\n7 1 oom 600\n",
			[]string{"2 650 600 0 0"}},
		"driver alone": {"2 1 other 2000\n300 1 other 2000\n", nil},
	} {
		var got []string
		for _, r := range oomOf(t, c.lines).Retries {
			got = append(got, fmt.Sprintf("%d %d %d %d %d", r.FailedCount, r.FirstRequestedBytes/mib, r.RequestedBytes/
				mib, r.AsMuchTimeNS/1e6, r.StepTimeNS/1e6))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestOOMRetriesSameCall: what the call stack of the last failure is granted afterwards is the same call's; a step of
// an optimizer ends the waiting. The recorder's own watch says the same once the run is over.
func TestOOMRetriesSameCall(t *testing.T) {
	text := oomHead + `code id=101 name="main" file="/home/ada/train.py" line=60 table=none
pystack id=20 frames=101+0*
pystack id=21 frames=101+2*
oom seq=1 time=1000000 thread=1 level=framework api=reportOutOfMemoryToProfiler size=1048576 stack=1 pystack=20 allocated=0 reserved=0
alloc seq=2 time=2000000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=0x10000000 size=2048 pystack=21
alloc seq=3 time=3000000 thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=0x20000000 size=524288 pystack=20
name seq=4 time=4000000 thread=1 category=step handle=0x99 name=5
`
	r := encoded(t, text)
	want := report.OOMRetries{FailedCount: 1, FirstTimeNS: 1e6, FirstRequestedBytes: 1 << 20, LastTimeNS: 1e6,
		RequestedBytes: 1 << 20, GrantedTimeNS: 3e6, GrantedBytes: 1 << 19, StepTimeNS: 4e6}
	s, err := Summarize(encoded(t, text), Options{})
	if err != nil || len(s.OOM.Retries) != 1 || s.OOM.Retries[0] != want {
		t.Fatalf("%v, %+v", err, s.OOM.Retries)
	}
	w := oom.NewWatch(r.Tables(), trace.Info{}, 1<<40)
	for events, err := r.ReadBatch(); err == nil; events, err = r.ReadBatch() {
		w.Apply(events)
	}
	w.End()
	if got := w.TakeRetries(); len(got) != 1 || got[0] != want {
		t.Errorf("the watch: %+v", got)
	}
}

// TestOOMRetriesAreOfTheThreadThatFailed: where a thread of Python failed, and nothing is granted to the same call
// afterwards, steps of another one are no attempt that succeeded. A queue that a dead thread had filled was said to
// have been retried. Failures of a backward pass, whose threads run no Python, are retried by any.
func TestOOMRetriesAreOfTheThreadThatFailed(t *testing.T) {
	for _, c := range []struct {
		pystack, granted, thread int
		succeeded                bool
	}{{20, 21, 2, false}, {20, 20, 2, true}, {20, 21, 1, true}, {0, 21, 2, true}} {
		text := oomHead + `code id=101 name="main" file="/home/ada/train.py" line=60 table=none
thread id=2 tid=4712 name="consumer"
pystack id=20 frames=101+0*
pystack id=21 frames=101+2*
` + fmt.Sprintf(`oom seq=1 time=1000000 thread=1 level=framework api=reportOutOfMemoryToProfiler size=1048576 stack=1 pystack=%d allocated=0 reserved=0
alloc seq=2 time=2000000 thread=2 level=framework api=reportMemoryUsageToProfiler mem=device addr=0x10000000 size=2048 pystack=%d
name seq=3 time=3000000 thread=%d category=step handle=0x99 name=5
`, c.pystack, c.granted, c.thread)
		s, err := Summarize(encoded(t, text), Options{})
		if err != nil || len(s.OOM.Retries) != 1 {
			t.Fatalf("%v, %+v", err, s)
		}
		if _, succeeded := s.OOM.Retries[0].Succeeded(); succeeded != c.succeeded {
			t.Errorf("%+v: %+v", c, s.OOM.Retries[0])
		}
	}
}

// linearStacks are a loop of the program's and a module that it calls, in two stacks: a workspace of the second is made
// once.
const linearStacks = `pystack id=20 frames=101+0*
pystack id=21 frames=103+0*,104+0*,102+0*@0x7f0000000040,101+2*
pystack id=22 frames=103+4*,104+0*,102+0*@0x7f0000000040,101+2*
`

// composed is what blocks consist of when memory runs out, which a story allocates: MiB at a stack each.
func composed(t *testing.T, stacks string, story func(alloc func(size, stack int))) report.OOMComposition {
	t.Helper()
	const modules = "/venv/lib/python3.12/site-packages/torch/nn/modules/"
	text := strings.Builder{}
	text.WriteString(oomHead + `code id=101 name="main" file="/home/ada/train.py" line=60 table=none
code id=102 name="_wrapped_call_impl" file="` + modules + `module.py" line=1 table=none modulecall=1
code id=103 name="forward" file="` + modules + `linear.py" line=1 table=none
code id=104 name="_call_impl" file="` + modules + `module.py" line=1 table=none
` + stacks)
	seq := 0
	story(func(size, stack int) {
		seq++
		fmt.Fprintf(&text, "alloc seq=%d time=%d thread=1 level=framework api=reportMemoryUsageToProfiler mem=device "+
			"addr=%#x size=%d pystack=%d allocated=1 reserved=1\n", seq, seq, seq<<24, size<<20, stack)
	})
	fmt.Fprintf(&text, "oom seq=%d time=1000 thread=1 level=framework api=reportOutOfMemoryToProfiler size=1048576 "+
		"stack=1 pystack=21 allocated=0 reserved=0\n", seq+1)
	r := encoded(t, text.String())
	w := oom.NewWatch(r.Tables(), trace.Info{}, 1<<40)
	defer w.Close()
	for events, err := r.ReadBatch(); err == nil; events, err = r.ReadBatch() {
		w.Apply(events)
	}
	w.End()
	found := w.Take()
	if len(found) != 1 || found[0].Event.Composition == nil {
		t.Fatalf("%+v", found)
	}
	return *found[0].Event.Composition
}

// TestPassesBesideAWorkspace: what is kept of earlier passes is found where one block, larger than all that the passes
// made at one place, was made in a module: a workspace of cuBLASLt, seen on an H100.
func TestPassesBesideAWorkspace(t *testing.T) {
	c := composed(t, linearStacks, func(alloc func(size, stack int)) {
		alloc(1, 20)
		for pass := range 8 {
			alloc(1, 20)
			alloc(2, 21)
			if pass == 0 {
				alloc(20, 22)
			}
		}
	})
	if c.Passes < 8 || c.OlderBytes < 7*3*mib {
		t.Errorf("%+v", c)
	}
}

// An activation function that 28 layers share was told as 28 forward passes, whose results a list keeps: what lies
// between its runs is made once, by a layer each.
func TestSharedActivationIsOnePass(t *testing.T) {
	const layers = 28
	c := composed(t, manyStacks(layers), func(alloc func(size, stack int)) {
		alloc(1, 20)
		for i := range layers {
			alloc(32, 100+i)
			alloc(32, 21)
		}
	})
	if c.Passes > 1 || c.OlderBytes > 0 {
		t.Errorf("%+v", c)
	}
}

// manyStacks are stacks of so many modules, each of its own, from 100 on.
func manyStacks(modules int) string {
	stacks := strings.Builder{}
	stacks.WriteString(linearStacks)
	for i := range modules {
		fmt.Fprintf(&stacks, "pystack id=%d frames=103+0*,104+0*,102+0*@0x7f0000001%03x,101+2*\n", 100+i, i)
	}
	return stacks.String()
}

// A recurrent network's state that was kept with its graph from call to call was told as the activations of one
// iteration: within each call, its cell runs for each step of time.
func TestPassesOfARecurrentNetwork(t *testing.T) {
	const calls, times = 25, 20
	c := composed(t, manyStacks(4), func(alloc func(size, stack int)) {
		for call := range calls {
			alloc(1, 20)
			for front := range 3 {
				alloc(2, 100+front)
			}
			for range times + call%3 {
				alloc(1, 103)
				alloc(1, 103)
			}
		}
	})
	if least := uint64((calls - 1) * (7 + 2*times) * mib); c.Passes != calls || c.OlderBytes < least || !c.KeepsGraphs {
		t.Errorf("%+v", c)
	}
}

// One pass through layers of their own is one pass, though code outside of them lies between any two, and the heads of
// each run in a loop and share a function.
func TestLayersWithHeadsAreOnePass(t *testing.T) {
	const layers, heads = 24, 4
	for name, shared := range map[string]int{"small": 1, "large": 32} {
		c := composed(t, manyStacks(layers), func(alloc func(size, stack int)) {
			alloc(1, 20)
			for layer := range layers {
				for range heads {
					alloc(2, 100+layer)
					alloc(shared, 21)
					alloc(shared, 22)
				}
				alloc(1, 20)
			}
		})
		if c.Passes > 1 || c.OlderBytes > 0 {
			t.Errorf("what they share is %s: %+v", name, c)
		}
	}
}

func encoded(t *testing.T, text string) *trace.Reader {
	t.Helper()
	var file strings.Builder
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(strings.NewReader(file.String()), -1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOOMCategoriesFollowTheRules: the recorder, which cannot link the rules of the preset torch, puts live blocks into
// the categories that they do.
func TestOOMCategoriesFollowTheRules(t *testing.T) {
	set, err := rulefile.Preset("torch")
	if err != nil {
		t.Fatal(err)
	}
	const packages = "/venv/lib/python3.11/site-packages/torch/"
	codes := map[string]string{"init": packages + "nn/modules/module.py _apply", "forward": packages +
		"nn/modules/module.py _call_impl", "backward": packages + "autograd/__init__.py backward",
		"optimizer": packages + "optim/adam.py step", "_init_group": packages + "optim/adam.py Adam._init_group",
		"recompute": packages + "utils/checkpoint.py recompute_fn", "other": "/home/ada/train.py main",
		"data": packages + "utils/data/_utils/fetch.py fetch"}
	text := strings.Builder{}
	text.WriteString(oomHead)
	id, want := 100, map[string]uint64{}
	events := strings.Builder{}
	seq := 0
	block := func(size int, named string, lasts string, frames ...string) {
		id++
		subject := &rules.Subject{Level: "framework", Lasts: lasts}
		if named != "" {
			subject.Name = map[string]string{"optimizer": "optimizer_state:"}[named] + named + ":weight"
		}
		var list []string
		for i, at := range frames {
			file, function, _ := strings.Cut(codes[at], " ")
			number := id*10 + i
			fmt.Fprintf(&text, "code id=%d name=%q file=%q line=1 table=none\n", number, function, file)
			list = append(list, fmt.Sprintf("%d+0", number))
			subject.Frames = append(subject.Frames, &rules.Frame{Functions: []string{function}, File: file})
		}
		fmt.Fprintf(&text, "pystack id=%d frames=%s*\n", id, strings.Join(list, ","))
		seq++
		fmt.Fprintf(&events,
			"alloc seq=%d time=%d thread=1 level=framework api=reportMemoryUsageToProfiler mem=device addr=%#x size=%d pystack=%d allocated=1 reserved=1\n", seq, seq, seq<<20, size, id)
		if named != "" {
			seq++
			fmt.Fprintf(&events, "name seq=%d time=%d thread=1 category=%s addr=%#x name=3\n", seq, seq, named,
				(seq-1)<<20)
		}
		category := rules.Others
		if found := set.Matcher().Match(subject); len(found) > 0 {
			category = found[0]
		}
		want[category] += uint64(size)
	}
	for i, named := range []string{"", "parameter", "buffer", "gradient", "optimizer"} {
		block(512<<i, named, rules.Lasting, "other")
	}
	for i, phase := range []string{"init", "forward", "optimizer", "recompute", "data"} {
		block(512<<(5+i), "", rules.Lasting, phase, "other")
	}
	block(512<<10, "", rules.Lasting, "_init_group", "optimizer", "other")
	// a backward pass leaves what is as large as a parameter without a gradient, once
	block(1024, "", rules.Lasting, "backward", "other")
	block(1024, "", rules.Temporary, "backward", "other")
	block(1536, "", rules.Temporary, "backward", "other")
	fmt.Fprintf(&events,
		"oom seq=%d time=%d thread=1 level=framework api=reportOutOfMemoryToProfiler size=1048576 allocated=1 reserved=1\n", seq+1, seq+1)
	r := encoded(t, text.String()+events.String())
	w := oom.NewWatch(r.Tables(), trace.Info{}, 1<<40)
	for batch, err := r.ReadBatch(); err == nil; batch, err = r.ReadBatch() {
		w.Apply(batch)
	}
	w.End()
	found := w.Take()
	if len(found) != 1 || len(want) < 7 {
		t.Fatalf("%d events, categories %v", len(found), want)
	}
	got := map[string]uint64{}
	for _, c := range found[0].Event.Categories {
		got[c.Category] = c.Bytes
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if last := found[0].Event.Categories[len(got)-1]; last.Category != rules.Others {
		t.Errorf("the last row is %+v", last)
	}
	var sum uint64
	w.Close()
	for _, bytes := range got {
		sum += bytes
	}
	if sum != found[0].Event.Allocator.AllocatedBytes {
		t.Errorf("the categories hold %d of %d", sum, found[0].Event.Allocator.AllocatedBytes)
	}
	checkTablesAtRefusal(t, text.String()+events.String(), set, want)
}

// checkTablesAtRefusal compares the tables of the moment at which memory ran out, and what a training held then, with
// what each category has. Both put gradients of activations with those of parameters, other than the refusal's text.
func checkTablesAtRefusal(t *testing.T, text string, set *rules.Set, want map[string]uint64) {
	t.Helper()
	s, err := Summarize(encoded(t, text), Options{
		Question: Question{Groupings: []string{"category"}, At: must(moment.Parse("oom"))}, Training: true,
		Ahead: encoded(t, text), RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}})
	if err != nil {
		t.Fatal(err)
	}
	tables, training, event := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, row := range s.Categories[0].Rows {
		tables[row.Key] = row.Bytes
	}
	for i, category := range s.Training.Categories {
		training[category] = s.Training.OutOfMemory[0].Held[i]
	}
	for _, c := range s.OOM.Events[0].Categories {
		event[c.Category] = c.Bytes
	}
	for what, got := range map[string]map[string]uint64{"tables": tables, "training": training, "event": event} {
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}
