//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"memtrace/internal/guest"
	"memtrace/internal/metrics"
)

// metricFamily is what prometheus_client found of one name.
type metricFamily struct {
	Type    string `json:"type"`
	Unit    string `json:"unit"`
	Help    string `json:"help"`
	Samples []struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		Value  float64           `json:"value"`
	} `json:"samples"`
}

// readOpenMetrics reads a text with the parser of Prometheus's client for Python.
func readOpenMetrics(t *testing.T, text []byte) map[string]metricFamily {
	t.Helper()
	install := exec.Command("scripts/python-tools.sh", "internal/tools/metrics-requirements.txt")
	install.Dir, install.Stderr = guest.Root(), os.Stderr
	tools, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	parse := exec.Command(filepath.Join(strings.TrimSpace(string(tools)), "python"),
		filepath.Join(guest.Root(), "testdata/python/openmetrics.py"))
	parse.Stdin, parse.Stderr = bytes.NewReader(text), os.Stderr
	out, err := parse.Output()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var families map[string]metricFamily
	if err := json.Unmarshal(out, &families); err != nil {
		t.Fatal(err)
	}
	return families
}

// value returns the only sample of a name that has the labels.
func metricValue(t *testing.T, families map[string]metricFamily, name string, labels map[string]string) float64 {
	t.Helper()
	family, known := families[strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "_info")]
	if !known {
		t.Fatalf("there is no %s", name)
	}
	found, value := 0, 0.0
	for _, s := range family.Samples {
		wanted := s.Name == name
		for key, text := range labels {
			wanted = wanted && s.Labels[key] == text
		}
		if wanted {
			found++
			value = s.Value
		}
	}
	if found != 1 {
		t.Fatalf("%d samples of %s%v: %+v", found, name, labels, family.Samples)
	}
	return value
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestMetricsHostile: whatever a program calls its memory, the strict parser reads exactly that, and nothing else.
func TestMetricsHostile(t *testing.T) {
	t.Parallel()
	extended(t)
	texts := []string{"plain", `"`, `\`, `\n`, "a\nforged_bytes 1\n# EOF\n", `"} 1`, "\x00\x1b[2J", "\xff", "日本",
		`{a="b"}`, " ", "a\\", strings.Repeat("x/", 300) + "end.py"}
	gauge := &metrics.Family{Name: "hostile_bytes", Unit: "bytes", Help: "A \"quoted\" \\ text\nof two lines."}
	counter := &metrics.Family{Name: "hostile_events", Type: metrics.Counter, Help: "Counted."}
	info := &metrics.Family{Name: "hostile", Type: metrics.Info, Help: "About it."}
	for i, text := range texts {
		gauge.Add(float64(i)-3.25, metrics.Label{Name: "owner", Value: text},
			metrics.Label{Name: "process_pid", Value: "1"})
		counter.Add(float64(i), metrics.Label{Name: "owner", Value: text})
		info.Add(1, metrics.Label{Name: "owner", Value: text})
	}
	var out bytes.Buffer
	if err := metrics.Write(&out, []*metrics.Family{gauge, counter, info}, metrics.OpenMetrics); err != nil {
		t.Fatal(err)
	}
	read := readOpenMetrics(t, out.Bytes())
	if len(read) != 3 || read["hostile_bytes"].Unit != "bytes" || read["hostile_bytes"].Help != gauge.Help ||
		read["hostile_events"].Type != "counter" || read["hostile"].Type != "info" {
		t.Errorf("%+v", read)
	}
	for i, text := range texts {
		labels := map[string]string{"owner": metrics.Clean(text)}
		same(t, text, metricValue(t, read, "hostile_bytes", labels), float64(i)-3.25)
		same(t, text, metricValue(t, read, "hostile_events_total", labels), float64(i))
		same(t, text, metricValue(t, read, "hostile_info", labels), 1)
	}
}

// startMetrics starts a server and returns its address.
func startMetrics(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"top", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		for lines.Scan() {
			t.Errorf("the server says %q", lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	if !lines.Scan() {
		t.Fatal("the server said nothing")
	}
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics$`).FindString(lines.Text())
	if at == "" {
		t.Fatalf("the server said %q", lines.Text())
	}
	return at
}

func scrape(t *testing.T, at, accept string) []byte {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", answer.Status, err, text)
	}
	return text
}

// Two programs train on one device, one of them under hostile tags. A scrape of each has what the null driver charged
// and what PyTorch counts, to the byte; owners, slack and remainder add up to the driver's figure; and both formats
// agree.
func TestMetrics(t *testing.T) {
	t.Parallel()
	extended(t)
	const context = 300 << 20
	const hostile = `ke"pt\n` + "\n} 1"
	dir := t.TempDir()
	script := filepath.Join(dir, "pausing.py")
	if err := os.WriteFile(script,
		[]byte(strings.ReplaceAll(pausing, `memtrace.tag("kept")`, "memtrace.tag("+strconv.Quote(hostile)+")")),
		0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"NULLCUDA_SHARED=" + filepath.Join(dir, "account"), "NULLCUDA_CONTEXT=300M", "NULLCUDA_MEM=16G"}
	guests := []*pausedGuest{startPaused(t, script, 1024, append(env, "RANK=0")...),
		startPaused(t, script, 2048, append(env, "RANK=1")...)}
	env = append(env, "LD_LIBRARY_PATH="+filepath.Join(venv(t, torch27, ""), "nullcuda"))
	var only []string // these programs, whatever other tests record meanwhile
	for _, g := range guests {
		only = append(only, "--pid", strconv.Itoa(g.cmd.Process.Pid))
	}
	at := ""
	for stage := range 2 {
		for _, g := range guests {
			if stage > 0 {
				io.WriteString(g.in, "more\n")
			}
			g.waitReady(t)
		}
		if stage > 0 {
			waitForOwner(t, at, metrics.Clean(hostile), len(guests))
		}
		// reads everything at once; one that has been there for a while may be a moment late
		at = startMetrics(t, env, only...)
		read := scrapeUntil(t, at, "what the programs are made of", func(read map[string]metricFamily) bool {
			// is in the trace a moment after the first block
			return isWhole(read, len(guests)) && knownFrameworks(read) == len(guests)
		})
		same(t, "device's use", metricValue(t, read, "hw_gpu_memory_usage_bytes", nil),
			float64(guests[0].occupied(t)+guests[1].occupied(t)))
		same(t, "device's size", metricValue(t, read, "hw_gpu_memory_limit_bytes", nil), 16<<30)
		for rank, g := range guests {
			own := map[string]string{"process_pid": strconv.Itoa(g.cmd.Process.Pid), "rank": strconv.Itoa(rank)}
			with := func(pairs ...string) map[string]string {
				labels := maps.Clone(own)
				for i := 0; i+1 < len(pairs); i += 2 {
					labels[pairs[i]] = pairs[i+1]
				}
				return labels
			}
			same(t, "its use", metricValue(t, read, "memtrace_device_memory_bytes", own), float64(g.occupied(t)))
			same(t, "driver memory", metricValue(t, read, "memtrace_memory_bytes",
				with("level", "driver", "device", "0")), float64(g.live(t)))
			same(t, "framework memory", metricValue(t, read, "memtrace_memory_bytes", with("level", "framework")),
				float64(g.allocated))
			same(t, "remainder", metricValue(t, read, "memtrace_remainder_bytes", own), context)
			same(t, "out of memory", metricValue(t, read, "memtrace_out_of_memory_total", with("outcome", "failed")), 0)
			same(t, "command", metricValue(t, read, "memtrace_process_info",
				with("process_command", "python pausing.py", "framework", "torch")), 1)
			sum := metricValue(t, read, "memtrace_slack_bytes", own)
			for _, s := range read["memtrace_owner_memory_bytes"].Samples {
				if s.Labels["process_pid"] == own["process_pid"] {
					sum += s.Value
				}
			}
			same(t, "owners and slack", sum, float64(g.live(t)))
			if stage > 0 {
				same(t, "the hostile tag", metricValue(t, read, "memtrace_owner_memory_bytes",
					with("owner", metrics.Clean(hostile), "grouping", "tag")), 40<<20)
			}
			parameters := metricValue(t, read, "memtrace_category_memory_bytes", with("category", "Parameters"))
			if width := float64([]int{1024, 2048}[rank]); parameters < 2*4*width*(width+1) {
				t.Errorf("parameters of rank %d: %v bytes", rank, parameters)
			}
		}
	}
	sameInBothFormats(t, at, env, filepath.Join(dir, "m.prom"), only...)
}

// scrapeUntil scrapes until what it finds is as wanted, and fails the test if that does not come.
func scrapeUntil(t *testing.T, at, what string, wanted func(map[string]metricFamily) bool) map[string]metricFamily {
	t.Helper()
	var read map[string]metricFamily
	until(t, what, func() bool {
		read = readOpenMetrics(t, scrape(t, at, "application/openmetrics-text; version=1.0.0"))
		return wanted(read)
	})
	return read
}

// isWhole reports whether the traces of all processes were read once.
func isWhole(read map[string]metricFamily, processes int) bool {
	return len(read["memtrace_trace_readable"].Samples) == processes
}

// knownFrameworks counts the processes whose framework is known by name.
func knownFrameworks(read map[string]metricFamily) (n int) {
	for _, s := range read["memtrace_process"].Samples {
		if s.Labels["framework"] == "torch" {
			n++
		}
	}
	return n
}

// waitForOwner scrapes until an owner has its series in all processes: a server follows what it reads.
func waitForOwner(t *testing.T, at, owner string, processes int) {
	t.Helper()
	scrapeUntil(t, at, "memory of "+owner, func(read map[string]metricFamily) bool {
		found := 0
		for _, s := range read["memtrace_owner_memory_bytes"].Samples {
			if s.Labels["owner"] == owner && s.Value > 0 {
				found++
			}
		}
		return isWhole(read, processes) && found >= processes
	})
}

// sameInBothFormats compares series by name: the classic format, by HTTP and as a file, has those that the other one
// has.
func sameInBothFormats(t *testing.T, at string, env []string, path string, args ...string) {
	t.Helper()
	var want []string
	for _, family := range readOpenMetrics(t, scrape(t, at, "application/openmetrics-text")) {
		for _, s := range family.Samples {
			want = append(want, s.Name)
		}
	}
	slices.Sort(want)
	cmd := exec.Command(command(), append([]string{"top", "--once", "--textfile", path}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"by HTTP": scrape(t, at, "text/plain"), "as a file": file} {
		parser := expfmt.NewTextParser(prometheus.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for name, family := range families {
			for range family.Metric {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d series, want %d:\n%s", what, len(got), len(want), text)
		}
	}
}
