package control

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"memtrace/trace"
)

const referrersText = "77\t0\t0\t52428812\t9000\n" +
	"52428800\t50\t0\t0\t0\t0\tfloat32\t262144\tcuda:0\t__main__.cache[*]\tmodule, list, Tensor\t7f0000000000,7f0000100000\n" +
	"12\t3\t54\t25165824\t0\t1\tfloat32\t\tcuda:1\t?list[*]\tlist, Tensor\t\n"

var referrersWant = Referrers{Seq: 4711, Referrers: trace.Referrers{Tensors: 77, Bytes: 52428812, Visits: 9000,
	Holders: []trace.Holder{
		{Path: "__main__.cache[*]", Types: "module, list, Tensor", Tensors: 50, Bytes: 52428800,
			Shape: []uint64{262144}, DType: "float32", Device: "cuda:0",
			Storages: []uint64{0x7f0000000000, 0x7f0000100000}},
		{Path: "?list[*]", Types: "list, Tensor", Tensors: 3, Bytes: 12, Shape: []uint64{}, DType: "float32",
			Device: "cuda:1", GraphNodes: 54, GraphBytes: 25165824, Garbage: true, Storages: []uint64{}},
	}}}

// announced is the first packet before rows.
func announced(text string) string {
	return fmt.Sprintf("state=recording\ntrace=/t.bin\nreferrers=%d\nseq=4711", len(text))
}

func findReferrers() (*Referrers, error) {
	_, found, err := FindReferrers(os.Getpid(), 10, time.Second)
	return found, err
}

// Rows come in as many packets as the library takes, wherever it cuts them.
func TestFindReferrers(t *testing.T) {
	for _, size := range []int{1, 7, 100, len(referrersText)} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			serve(t, func(request string) []string {
				if request != "referrers 10 1000" {
					t.Errorf("asked %q", request)
				}
				packets := []string{announced(referrersText)}
				for rest := referrersText; rest != ""; rest = rest[min(size, len(rest)):] {
					packets = append(packets, rest[:min(size, len(rest))])
				}
				return packets
			})
			if found, err := findReferrers(); err != nil || !reflect.DeepEqual(*found, referrersWant) {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// Any other answer of a process is one error.
func TestFindReferrersOdd(t *testing.T) {
	row := "1\t1\t0\t0\t0\t0\tf\t1\tcuda:0\tp\tt\t1\n"
	const senseless = "makes no sense"
	for name, c := range map[string]struct {
		packets []string
		problem string
	}{
		"refused":         {[]string{"state=recording\nerror=no Python runs there"}, "no Python runs there"},
		"nothing follows": {[]string{"state=recording"}, senseless},
		"none announced":  {[]string{"state=recording\nreferrers=0"}, senseless},
		"no number":       {[]string{"state=recording\nreferrers=many"}, senseless},
		"too much":        {[]string{"state=recording\nreferrers=99999999999", referrersText}, senseless},
		"cut":             {[]string{announced(referrersText), referrersText[:80]}, "does not answer"},
		"only announced":  {[]string{announced(referrersText)}, "does not answer"},
		"more than it is": {[]string{announced("0\t0\t0\t0\t0\n"), "0\t0\t0\t0\t0\n" + row}, senseless},
		"no line":         {[]string{announced("x"), "x"}, senseless},
		"no end":          {[]string{announced("0\t0\t0\t0\t0"), "0\t0\t0\t0\t0"}, senseless},
		"row without end": {[]string{announced("1\t0\t0\t0\t0\n" + row[:len(row)-1]),
			"1\t0\t0\t0\t0\n" + row[:len(row)-1]}, senseless},
		"a field too few":  {[]string{announced("1\t0\n" + row), "1\t0\n" + row}, senseless},
		"a field too many": {[]string{announced("1\t0\t0\t0\t0\n1\t" + row), "1\t0\t0\t0\t0\n1\t" + row}, senseless},
		"negative":         {[]string{announced("1\t0\t0\t0\t0\n-" + row), "1\t0\t0\t0\t0\n-" + row}, senseless},
		"an empty row":     {[]string{announced("1\t0\t0\t0\t0\n\n"), "1\t0\t0\t0\t0\n\n"}, senseless},
		"too many rows": {[]string{announced("1\t0\t0\t0\t0\n" + strings.Repeat(row, MostRows+1)), "1\t0\t0\t0\t0\n" +
			strings.Repeat(row, MostRows+1)}, senseless},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, says(c.packets...))
			if found, err := findReferrers(); err == nil || !strings.Contains(err.Error(), c.problem) || found != nil {
				t.Errorf("%+v, %v; want %s", found, err, c.problem)
			}
		})
	}
	t.Run("silent amid rows", func(t *testing.T) {
		impatient(t)
		serve(t, says(announced(referrersText), referrersText[:80], silence))
		if _, err := findReferrers(); err == nil || !strings.Contains(err.Error(), "may be stopped") {
			t.Errorf("%v", err)
		}
	})
}

func FuzzReferrers(f *testing.F) {
	f.Add(referrersText)
	f.Add("0\t0\t0\t0\t0\n")
	f.Add("1\t0\t0\t0\t0\n1\t1\t0\t0\t0\t0\tf\t1,,2\tcuda:0\tp\tt\tx\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := trace.ParseReferrers(text)
		if err == nil && (len(found.Holders) > MostRows || strings.Count(text, "\n") != len(found.Holders)+1) {
			t.Errorf("%d rows of %q", len(found.Holders), text)
		}
	})
}
