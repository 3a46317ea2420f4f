package metrics

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
)

// Prometheus, in its versions, and others send these headers. What is chosen agrees with Prometheus's own library,
// where that has the format.
func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]Format{
		"":                             Classic,
		"*/*":                          Classic,
		"text/html":                    Classic,
		"text/plain":                   Classic,
		"application/openmetrics-text": OpenMetrics,
		"application/openmetrics-text; version=1.0.0; charset=utf-8": OpenMetrics,
		"application/openmetrics-text; version=2.0.0":                Classic,
		"application/openmetrics-text;q=0.3, text/plain;q=0.5":       Classic,
		"text/plain;q=0.5, application/openmetrics-text;q=0.5":       OpenMetrics,
		"application/openmetrics-text;q=0":                           Classic,
		"application/openmetrics-text;q=nonsense":                    Classic,
		`,;"" ,`: Classic,
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1": OpenMetrics,
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1":       OpenMetrics,
	} {
		if got := Negotiate(accept); got != want {
			t.Errorf("%q: format %d, want %d", accept, got, want)
		}
		theirs := expfmt.NegotiateAccept(http.Header{"Accept": {accept}}, expfmt.DefaultOpenMetricsAcceptedFormats()...)
		if kind := theirs.FormatType(); (kind == expfmt.TypeOpenMetrics) != (want == OpenMetrics) &&
			kind != expfmt.TypeProtoDelim && !strings.Contains(accept, "q=") {
			t.Errorf("%q: Prometheus's library chooses %s", accept, theirs)
		}
	}
}

func ask(t *testing.T, server *http.Server, method, target, host string, head http.Header) *http.Response {
	t.Helper()
	request := httptest.NewRequest(method, target, nil)
	request.Host = host
	for name, values := range head {
		request.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	server.Handler.ServeHTTP(recorder, request)
	return recorder.Result()
}

func oneFamily(time.Duration) ([]*Family, error) {
	f := &Family{Name: "a", Help: "A."}
	f.Add(1)
	return []*Family{f}, nil
}

func TestServer(t *testing.T) {
	for _, c := range []struct {
		method, target, host string
		own                  bool
		status               int
	}{
		{"GET", "/metrics", "127.0.0.1:9464", true, 200},
		{"HEAD", "/metrics", "localhost:9464", true, 200},
		{"GET", "/metrics", "[::1]:9464", true, 200},
		{"GET", "/metrics", "[::1]", true, 200},
		{"GET", "/metrics", "evil.example:9464", true, 403},
		{"GET", "/metrics", "127.0.0.1.evil.example", true, 403},
		{"GET", "/metrics", "", true, 403},
		{"GET", "/metrics", "node7:9464", false, 200},
		{"GET", "/", "localhost", true, 404},
		{"GET", "/metrics/", "localhost", true, 404},
		{"GET", "/metrics/../debug/pprof", "localhost", true, 404},
		{"POST", "/metrics", "localhost", true, 405},
		{"DELETE", "/metrics", "localhost", true, 405},
	} {
		answer := ask(t, NewServer(oneFamily, c.own), c.method, c.target, c.host, nil)
		if answer.StatusCode != c.status {
			t.Errorf("%s %s of %s: %s", c.method, c.target, c.host, answer.Status)
		}
		if c.status == 405 && answer.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("allows %q", answer.Header.Get("Allow"))
		}
	}
}

func TestServerFormats(t *testing.T) {
	server := NewServer(oneFamily, true)
	for accept, end := range map[string]string{"": "a 1\n", "application/openmetrics-text": "a 1\n# EOF\n"} {
		answer := ask(t, server, "GET", "/metrics", "localhost", http.Header{"Accept": {accept}})
		text, err := io.ReadAll(answer.Body)
		if err != nil || !strings.HasSuffix(string(text), end) ||
			strings.Contains(string(text), "# EOF") != (accept != "") {
			t.Errorf("%v: %q", err, text)
		}
		if got, want := answer.Header.Get("Content-Type"), Negotiate(accept).ContentType(); got != want {
			t.Errorf("content type %q, want %q", got, want)
		}
	}
}

func TestServerFails(t *testing.T) {
	server := NewServer(func(time.Duration) ([]*Family, error) { return nil, errors.New("no disk") }, true)
	if answer := ask(t, server, "GET", "/metrics", "localhost", nil); answer.StatusCode != 500 ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s, %v", answer.Status, answer.Header)
	}
}

// Askers beyond a few are turned away instead of piling up while an answer takes long.
func TestServerIsBounded(t *testing.T) {
	entered, goOn := make(chan bool), make(chan bool)
	server := NewServer(func(time.Duration) ([]*Family, error) {
		entered <- true
		<-goOn
		return nil, nil
	}, true)
	done := make(chan int)
	for range maxScrapes {
		go func() { done <- ask(t, server, "GET", "/metrics", "localhost", nil).StatusCode }()
		<-entered
	}
	if answer := ask(t, server, "GET", "/metrics", "localhost", nil); answer.StatusCode != 503 {
		t.Error(answer.Status)
	}
	close(goOn)
	for range maxScrapes {
		if status := <-done; status != 200 {
			t.Error(status)
		}
	}
}

func TestPatience(t *testing.T) {
	for seconds, want := range map[string]time.Duration{"": maxPatience, "x": maxPatience, "-1": maxPatience,
		"1e9": maxPatience, "NaN": maxPatience, "4": 2 * time.Second, "0.5": 250 * time.Millisecond} {
		if got := patience(seconds); got != want {
			t.Errorf("%q: %s, want %s", seconds, got, want)
		}
	}
}
