// The server shows pages to a browser on this machine. Who does not know the token in the address gets nothing, nor
// does a page of another origin.

package page

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"memtrace/internal/loopback"
)

const (
	maxRequests  = 16       // that are answered at the same time
	maxHead      = 64 << 10 // bytes of a request before its body, which is not read
	headTimeout  = 5 * time.Second
	writeTimeout = 15 * time.Minute // a long trace takes its time to be read
	idleTimeout  = 2 * time.Minute
)

// NewToken makes the part of the address that cannot be guessed.
func NewToken() string {
	var token [20]byte
	_, _ = rand.Read(token[:]) // never fails: see crypto/rand
	return hex.EncodeToString(token[:])
}

// NewServer returns a server of traces below /TOKEN/.
func NewServer(token string, traces *Traces) *http.Server {
	s := &server{token: token, traces: traces, turns: make(chan struct{}, maxRequests)}
	return &http.Server{Handler: s, ReadHeaderTimeout: headTimeout, ReadTimeout: headTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead}
}

type server struct {
	token  string
	traces *Traces
	turns  chan struct{}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"} {
		w.Header().Set(name, value)
	}
	if why := foreign(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.Error(w, "open the whole address that memtrace serve printed", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "pages can only be read", http.StatusMethodNotAllowed)
		return
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	default:
		http.Error(w, "others are being answered", http.StatusServiceUnavailable)
		return
	}
	s.answer(w, r, rest)
}

// foreign returns why a request does not come from this machine's own pages, or "". Browsers send their origin. Another
// page may link here, only to be opened.
func foreign(r *http.Request) string {
	site := r.Header.Get("Sec-Fetch-Site")
	opened := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		r.Method == http.MethodGet
	switch origin := r.Header.Get("Origin"); {
	case !loopback.IsHost(r.Host):
		return "this server answers to 127.0.0.1, [::1] and localhost only"
	case origin != "" && origin != "http://"+r.Host:
		return "this server answers to its own pages only"
	case site != "" && site != "same-origin" && site != "none" && !opened:
		return "this server answers to its own pages only"
	}
	return ""
}

// answer sends what is below the token: the index, a trace's page, or the response to a request of such a page.
func (s *server) answer(w http.ResponseWriter, r *http.Request, path string) {
	parts := strings.Split(path, "/")
	switch {
	case path == "":
		text, err := s.traces.index(s.token)
		send(w, "text/html; charset=utf-8", text, err)
	case len(parts) == 2 && parts[0] == "t":
		text, err := s.traces.page(parts[1])
		send(w, "text/html; charset=utf-8", text, err)
	case len(parts) == 3 && parts[0] == "t" && parts[2] == "state":
		state, err := s.traces.state(parts[1])
		sendJSON(w, state, err)
	case len(parts) == 3 && parts[0] == "t":
		answer, err := s.traces.answer(parts[1], parts[2], r.URL.Query())
		sendJSON(w, answer, err)
	default:
		send(w, "", nil, errNoPage)
	}
}

var errNoPage = errors.New("there is no such page")

func sendJSON(w http.ResponseWriter, value any, err error) {
	var text []byte
	if err == nil {
		text, err = json.Marshal(value)
	}
	send(w, "application/json", text, err)
}

// send writes an answer. The words of an error may hold names of files: they are sent as plain text.
func send(w http.ResponseWriter, kind string, text []byte, err error) {
	var bad *badQuestion
	switch {
	case errors.Is(err, errNoPage) || errors.Is(err, ErrQuestion):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errNewer):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.As(err, &bad):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text) // the client may have closed the connection
	}
}

// badQuestion is the error of values that do not go with a question.
type badQuestion struct{ error }
