package metrics

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"memtrace/internal/loopback"
)

// Path is where the metrics are.
const Path = "/metrics"

const (
	maxScrapes   = 4        // that wait for an answer at the same time
	maxHead      = 16 << 10 // bytes of a request before its body, which is not read
	headTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
	maxPatience  = 5 * time.Second // half of Prometheus's usual timeout
)

// NewServer returns a server of what collect returns. collect gets the time that the answer may take. With
// ownHostsOnly, only requests that name this machine by a loopback address or as localhost are answered: otherwise a
// web page could read the metrics by a name of its own that resolves to this machine.
func NewServer(collect func(patience time.Duration) ([]*Family, error), ownHostsOnly bool) *http.Server {
	turns := make(chan struct{}, maxScrapes)
	handler := func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		switch {
		case ownHostsOnly && !loopback.IsHost(r.Host):
			http.Error(w, "this server answers to 127.0.0.1, [::1] and localhost only", http.StatusForbidden)
			return
		case r.URL.Path != Path:
			http.Error(w, "there is nothing but "+Path, http.StatusNotFound)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "metrics can only be read", http.StatusMethodNotAllowed)
			return
		}
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		default:
			http.Error(w, "others are being answered", http.StatusServiceUnavailable)
			return
		}
		families, err := collect(patience(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds")))
		format := Negotiate(strings.Join(r.Header.Values("Accept"), ","))
		var text bytes.Buffer
		if err == nil {
			err = Write(&text, families, format)
		}
		if err != nil {
			http.Error(w, "no metrics: "+err.Error(), http.StatusInternalServerError)
			return
		}
		head.Set("Content-Type", format.ContentType())
		head.Set("Vary", "Accept")
		head.Set("Content-Length", strconv.Itoa(text.Len()))
		_, _ = w.Write(text.Bytes()) // the client may have closed the connection
	}
	return &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: headTimeout, ReadTimeout: headTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead}
}

// patience is half of the scraper's stated timeout.
func patience(seconds string) time.Duration {
	if v, err := strconv.ParseFloat(seconds, 64); err == nil && v > 0 && v < 2*maxPatience.Seconds() {
		return time.Duration(v / 2 * float64(time.Second))
	}
	return maxPatience
}
