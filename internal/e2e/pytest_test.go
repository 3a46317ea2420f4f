//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// pytestRow is a test in tests.json.
type pytestRow struct {
	Test    string  `json:"test"`
	Outcome string  `json:"outcome"`
	Own     *uint64 `json:"own_bytes"`
	Peak    uint64  `json:"peak_bytes"`
	Left    *uint64 `json:"left_bytes"`
}

type fixtureRow struct {
	Fixture string `json:"fixture"`
	Held    uint64 `json:"held_bytes"`
}

// oracleRow is what PyTorch counted of a test, and what it says it asks for.
type oracleRow struct {
	Test string  `json:"test"`
	Peak uint64  `json:"peak"`
	Own  *uint64 `json:"own"`
	Left *uint64 `json:"left"`
}

type pytestRun struct {
	outcome
	dir  string
	file struct {
		Traces, Problems []string
		Tests            []pytestRow
		Fixtures         []fixtureRow
	}
	oracle []oracleRow
}

// pytest runs the suite of testdata/pytest in a folder of its own. budget is what its budget file has, "" for none.
func pytest(t *testing.T, framework, budget string, args ...string) *pytestRun {
	t.Helper()
	p := program{framework: framework}
	r := &pytestRun{dir: ownFolder(t)}
	if err := os.CopyFS(r.dir, os.DirFS(filepath.Join(guest.Root(), "testdata", "pytest"))); err != nil {
		t.Fatal(err)
	}
	if budget != "" {
		if err := os.WriteFile(filepath.Join(r.dir, "budget.toml"), []byte(budget), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args = slices.Concat([]string{"python", "-m", "pytest", "-p", "memtrace.pytest_plugin"}, args)
	cmd := exec.Command(filepath.Join(venv(t, framework, ""), "bin", "nullcuda-run"), args...)
	cmd.Dir = r.dir
	oracle := filepath.Join(r.dir, "oracle.jsonl")
	cmd.Env = append(environ(), "NULLCUDA_SHARED=none", "ORACLE="+oracle,
		"PYTHONPATH="+filepath.Join(guest.Root(), "python")+":"+p.packageFolder(t, "pytest.txt"), "COLUMNS=120")
	r.outcome = runOne(t, cmd)
	text, err := os.ReadFile(filepath.Join(r.dir, "memtrace-pytest", "tests.json"))
	if err == nil {
		err = json.Unmarshal(text, &r.file)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
	}
	if text, err = os.ReadFile(oracle); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var row oracleRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		r.oracle = append(r.oracle, row)
	}
	return r
}

// agrees compares every test's figures with PyTorch's own peak of it, and with what it asked for.
func (r *pytestRun) agrees(t *testing.T) {
	t.Helper()
	rows := map[string]pytestRow{}
	for _, row := range r.file.Tests {
		rows[row.Test] = row
	}
	if len(rows) != 30 || len(r.oracle) != 28 || len(r.file.Problems) > 0 {
		t.Fatalf("%d tests, %d were called, %q\n%s%s", len(rows), len(r.oracle), r.file.Problems, r.stdout, r.stderr)
	}
	for _, want := range r.oracle {
		got := rows[want.Test]
		equal(t, want.Test+", peak", got.Peak, want.Peak)
		if want.Own != nil {
			equal(t, want.Test+", own", value(got.Own), *want.Own)
		}
		if want.Left != nil {
			equal(t, want.Test+", left", value(got.Left), *want.Left)
		}
	}
	const failed = "test_fixtures.py::TestUnit::test_over test_fixtures.py::test_fixture_fails " +
		"test_fixtures.py::test_gradients_stay test_limits.py::test_asynchronous_over test_limits.py::test_filter " +
		"test_limits.py::test_leaks test_limits.py::test_over test_limits.py::test_over_in_total " +
		"test_limits.py::test_sizes[2.5]"
	var got []string
	for _, row := range r.file.Tests {
		if row.Outcome == "failed" {
			got = append(got, row.Test)
		}
	}
	slices.Sort(got)
	if text := strings.Join(got, " "); text != failed {
		t.Errorf("failed: %s; want %s", text, failed)
	}
	if o := rows["test_limits.py::test_expected_to_be_over"].Outcome; o != "xfailed" || r.status != 1 {
		t.Errorf("a test that is expected to be over its limit %s; exit status %d", o, r.status)
	}
	for _, trace := range r.file.Traces {
		if rep := jsonReport(t, trace); !rep.Health.Complete || rep.LostRecords != 0 {
			t.Errorf("%s: %s", trace, excerpt(rep))
		}
	}
}

func (r *pytestRun) says(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(r.stdout, line) {
			t.Errorf("it does not say %q:\n%s", line, r.stdout)
		}
	}
}

// pytest starts itself under the library, and shows of each test what PyTorch counted, whatever became of it. Limits
// and budgets name who holds too much. Wider fixtures hold their memory themselves.
func TestPytest(t *testing.T) {
	t.Parallel()
	r := pytest(t, torch27, "[tests]\n\"test_limits.py::test_within\" = \"3 MB\"\n\"test_limits.py::test_leak\" = 5\n"+
		"\"test_limits.py::test_sizes[1]\" = \"1 MiB\"\n", "--memtrace-budget", "budget.toml")
	r.agrees(t)
	r.says(t, "GPU memory reached 4.00 MiB, 512.0 KiB over the limit of 3.50 MiB; most is 4.00 MiB at conftest.py:",
		"1.00 MiB of GPU memory were left, and nothing may be left; most is 1.00 MiB at conftest.py:",
		"OVER BUDGET  test_limits.py::test_within held 4.00 MiB, 1.00 MiB over the limit of 3.00 MiB; most is 4.00 MiB at",
		"budget.toml has a budget for test_limits.py::test_leak, and there is no such test; did you mean "+
			"test_limits.py::test_leaks?", "memtrace report --from 'mark:TEST' memtrace-pytest/pytest.")
	held := map[string]uint64{}
	for _, f := range r.file.Fixtures {
		held[f.Fixture] = f.Held
	}
	for name, mib := range map[string]uint64{"weights": 6, "model": 4, "cache": 4, "late": 3, "sized[2]": 2,
		"TestUnit.setUpClass": 1} {
		equal(t, "fixture "+name, held[name], mib<<20)
	}
	// the mark of a test is the beginning of its part of the trace
	rep := jsonReport(t, r.file.Traces[0], "--from", "mark:test_limits.py::test_within", "--to", "mark:pytest: called")
	for _, row := range r.oracle {
		if row.Test == "test_limits.py::test_within" {
			equal(t, "the window's peak", rep.Framework.PeakBytes, row.Peak)
		}
	}
}

// The same from two workers at once, each with a trace of its own; and the budget that is written has every test that
// passed, with what it asked for, whichever tests its worker ran before.
func TestPytestWorkers(t *testing.T) {
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			rarely(t, framework == torch27)
			t.Parallel()
			// a file each: what is left depends on whether a wider fixture ends with the test
			r := pytest(t, framework, "", "-n", "2", "--dist=loadfile", "--memtrace-budget=budget.toml",
				"--memtrace-update")
			r.agrees(t)
			equal(t, "traces", uint64(len(r.file.Traces)), 2)
			text, err := os.ReadFile(filepath.Join(r.dir, "budget.toml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{`"test_fixtures.py::test_function_fixture" = "5 MiB"`,
				`"test_limits.py::test_within" = "4 MiB"`, `"test_limits.py::test_sizes[1]" = "1 MiB"`} {
				if !strings.Contains(string(text), "\n"+line+"\n") {
					t.Errorf("the budget has no %s:\n%s", line, text)
				}
			}
			if strings.Contains(string(text), "test_over") {
				t.Errorf("the budget has tests that failed:\n%s", text)
			}
		})
	}
}

// A test that ends its process: another worker goes on, and the figures of the one that died are read from its trace,
// up to its end. Without workers nothing is left to say it but the file, which is no longer that of the session before.
func TestPytestDies(t *testing.T) {
	extended(t)
	t.Parallel()
	r := pytest(t, torch27, "", "--memtrace", "-n", "1", "dies.py")
	want := map[string][2]string{"dies.py::test_before": {"3145728", "passed"},
		"dies.py::test_dies": {"7340032", "failed"}, "dies.py::test_after": {"2097152", "passed"}}
	for _, row := range r.file.Tests {
		if got := [2]string{fmt.Sprint(value(row.Own)), row.Outcome}; got != want[row.Test] {
			t.Errorf("%s: %s; want %s", row.Test, got, want[row.Test])
		}
	}
	if len(r.file.Tests) != len(want) || len(r.file.Problems) > 0 || len(r.file.Traces) != 2 || r.status != 1 {
		t.Errorf("%d tests, %q, traces %q, status %d", len(r.file.Tests), r.file.Problems, r.file.Traces, r.status)
	}
	r.says(t, "worker gw0 died (Not properly terminated); the figures of its tests are from its trace")

	r = pytest(t, torch27, "", "--memtrace", "dies.py")
	if r.status != 3 || len(r.file.Tests) > 0 || len(r.file.Problems) != 1 ||
		!strings.HasPrefix(r.file.Problems[0], "the session did not end: ") {
		t.Errorf("status %d, %d tests, %q", r.status, len(r.file.Tests), r.file.Problems)
	}
}
