package hostile

import (
	"strconv"
	"testing"
)

// What a program allocated before it called memtrace_start is not in the trace; all that it allocates afterwards is, by
// every route, and whichever thread loads libraries meanwhile.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, link := range []struct {
		name  string
		flags []string
	}{
		{"lazy", []string{"-Wl,-z,lazy", "-Wl,-z,norelro"}},
		{"now", []string{"-Wl,-z,now", "-Wl,-z,relro"}},
		{"fixed", []string{"-no-pie"}},
	} {
		program := compile(t, "starts-"+link.name, []string{"testdata/guest/starts.c"},
			append(withDriver(t), link.flags...)...)
		for _, c := range []struct {
			mode, library string
			late          bool
			sizes         map[uint64]int
		}{
			{mode: "linked", sizes: map[uint64]int{12001: 1}},
			{mode: "used", late: true, sizes: map[uint64]int{12002: 0, 12003: 1}},
			{mode: "pointer", sizes: map[uint64]int{12004: 1}},
			{mode: "fetched", late: true, sizes: map[uint64]int{12005: 1}},
			{mode: "twice", sizes: map[uint64]int{12006: 1}},
			{mode: "runtime-before", library: "12", sizes: map[uint64]int{12007: 1}},
			{mode: "runtime-before", library: "static12", sizes: map[uint64]int{12007: 1}},
			{mode: "runtime-after", library: "13", sizes: map[uint64]int{12007: 1}},
			{mode: "runtime-after", library: "static12", sizes: map[uint64]int{12007: 1}},
			{mode: "storm", library: "12", sizes: map[uint64]int{12008: 2000, 12009: 2000}},
		} {
			t.Run(link.name+" "+c.mode+c.library, func(t *testing.T) {
				args := []string{c.mode, library(t)}
				if c.library != "" {
					args = append(args, runtimeUser(t, c.library))
				}
				want := "start 0\nend\n"
				if c.late {
					want = "start 1\nend\n"
				}
				if c.mode == "twice" {
					want = "start 0\nstart 0\n" + want
				}
				got := run{program: program, args: args}.do(t)
				if got.exit != 0 || got.stdout != want || got.stderr != "" {
					t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
				}
				r := got.only(t)
				for size, count := range c.sizes {
					if n := r.allocations(size); n != count {
						t.Errorf("%d allocations of %d bytes, want %d", n, size, count)
					}
				}
			})
		}
	}
}

// Under LD_PRELOAD memtrace_start changes nothing; with recording switched off it reports that.
func TestStartWhereThereIsNothingToDo(t *testing.T) {
	t.Parallel()
	program := compile(t, "starts-now", []string{"testdata/guest/starts.c"},
		append(withDriver(t), "-Wl,-z,now", "-Wl,-z,relro")...)
	for _, c := range []struct {
		env    string
		result int
		traces int
	}{{"MEMTRACE_DISABLE=0", 0, 1}, {"MEMTRACE_DISABLE=1", -1, 0}} {
		got := run{program: program, args: []string{"used", library(t)}, env: []string{c.env},
			preload: []string{""}}.do(t)
		if got.exit != 0 || got.stdout != "start "+strconv.Itoa(c.result)+"\nend\n" || got.stderr != "" {
			t.Errorf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
		}
		if paths := got.traces(t); len(paths) != c.traces {
			t.Errorf("%d traces", len(paths))
		} else if c.traces > 0 && read(t, paths[0]).allocations(12002) != 1 {
			t.Error("what it did before is not in the trace")
		}
	}
}
