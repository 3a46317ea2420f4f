package exportcmd

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// received is what a server that follows the documents understood of a request.
type received struct {
	path, user, tenant string
	labels             map[string]string
	profile            []byte
	query              url.Values
	config             map[string]map[string]any
}

// standIn is a server that accepts what Pyroscope's API documents, and nothing else.
func standIn(t *testing.T, answer func(w http.ResponseWriter)) (*httptest.Server, *received) {
	t.Helper()
	got := &received{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.path, got.tenant, got.query = r.URL.Path, r.Header.Get("X-Scope-OrgID"), r.URL.Query()
		got.user, _, _ = r.BasicAuth()
		if r.Method != http.MethodPost {
			t.Errorf("method %s", r.Method)
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/push.v1.PusherService/Push"):
			got.readPush(t, r)
		case strings.HasSuffix(r.URL.Path, "/ingest"):
			got.readIngest(t, r)
		default:
			t.Errorf("path %s", r.URL.Path)
		}
		answer(w)
	}))
	t.Cleanup(server.Close)
	return server, got
}

func (g *received) readPush(t *testing.T, r *http.Request) {
	var body struct {
		Series []struct {
			Labels  []struct{ Name, Value string }
			Samples []struct {
				ID         string
				RawProfile []byte `json:"rawProfile"`
			}
		}
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v, content type %s", err, r.Header.Get("Content-Type"))
		return
	}
	if len(body.Series) != 1 || len(body.Series[0].Samples) != 1 {
		t.Errorf("%+v", body)
		return
	}
	g.labels = map[string]string{}
	for _, l := range body.Series[0].Labels {
		if _, twice := g.labels[l.Name]; twice {
			t.Errorf("label %s stands there twice", l.Name)
		}
		g.labels[l.Name] = l.Value
	}
	sample := body.Series[0].Samples[0]
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(
		sample.ID) {
		t.Errorf("ID %q", sample.ID)
	}
	g.profile = sample.RawProfile
}

func (g *received) readIngest(t *testing.T, r *http.Request) {
	for field, into := range map[string]*[]byte{"profile": &g.profile, "sample_type_config": nil} {
		file, _, err := r.FormFile(field)
		if err != nil {
			t.Errorf("field %s: %v", field, err)
			continue
		}
		text, err := io.ReadAll(file)
		if err != nil {
			t.Error(err)
		}
		if into != nil {
			*into = text
		} else if err := json.Unmarshal(text, &g.config); err != nil {
			t.Error(err)
		}
	}
}

func someProfile() *PyroscopeProfile {
	began := time.Unix(1700000000, 0)
	return &PyroscopeProfile{Service: "python3 train.py", Labels: map[string]string{"rank": "3", "host": "",
		"team": `a{b}="c", d`}, From: began, Until: began.Add(90 * time.Second),
		Types: []PyroscopeSampleType{{"alloc_objects", "count", false}, {"peak_space", "bytes", true}},
		Pprof: []byte("\x1f\x8b profile")}
}

func accept(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) }

func TestPush(t *testing.T) {
	server, got := standIn(t, accept)
	for suffix, path := range map[string]string{"": pushPath, "/": pushPath, "/base": "/base" + pushPath, "/base" +
		pushPath: "/base" + pushPath} {
		target, err := ParsePyroscopeTarget(strings.Replace(server.URL, "http://", "http://ada:secret@", 1) + suffix)
		if err != nil {
			t.Fatal(err)
		}
		target.Header("X-Scope-OrgID", "vision")
		if err := target.Push(t.Context(), someProfile()); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"__name__": "memory", "service_name": "python3 train.py", "rank": "3",
			"team": `a{b}="c", d`}
		if got.path != path || got.user != "ada" || got.tenant != "vision" || !reflect.DeepEqual(got.labels, want) ||
			!bytes.Equal(got.profile, someProfile().Pprof) {
			t.Errorf("%s: %+v", suffix, got)
		}
		if strings.Contains(target.String(), "secret") {
			t.Error("the address that is shown holds the password")
		}
	}
}

func TestIngest(t *testing.T) {
	server, got := standIn(t, accept)
	target, err := ParsePyroscopeTarget(server.URL + "/base/ingest")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Push(t.Context(), someProfile()); err != nil {
		t.Fatal(err)
	}
	query := url.Values{"name": {"python3_train.py{rank=3,team=a_b_c_d}"}, "from": {"1700000000"},
		"until": {"1700000090"}, "format": {"pprof"}, "spyName": {"memtrace"}}
	config := map[string]map[string]any{
		"alloc_objects": {"units": "objects", "display-name": "alloc_objects", "aggregation": "sum",
			"cumulative": false, "sampled": false},
		"peak_space": {"units": "bytes", "display-name": "peak_space", "aggregation": "average", "cumulative": false,
			"sampled": false}}
	if got.path != "/base/ingest" || !reflect.DeepEqual(got.query, query) ||
		!bytes.Equal(got.profile, someProfile().Pprof) || !reflect.DeepEqual(got.config, config) {
		t.Errorf("%+v", got)
	}
}

// A server's error is reported in its words, without the password, and redirects are not followed.
func TestPushFails(t *testing.T) {
	for want, answer := range map[string]func(http.ResponseWriter){
		"the server answers 400 Bad Request (profile too old)": func(w http.ResponseWriter) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"code":"invalid_argument","message":"profile too old"}`))
		},
		"the server answers 401 Unauthorized (who are you?)": func(w http.ResponseWriter) {
			http.Error(w, "who are you?", http.StatusUnauthorized)
		},
		"the server answers 500 Internal Server Error": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"name the address that it sends to": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(307)
		},
	} {
		server, _ := standIn(t, answer)
		target, err := ParsePyroscopeTarget(strings.Replace(server.URL, "http://", "http://ada:secret@", 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Push(t.Context(), someProfile()); err == nil || !strings.HasSuffix(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	gone, _ := ParsePyroscopeTarget("http://ada:secret@127.0.0.1:1")
	if err := gone.Push(t.Context(), someProfile()); err == nil || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

func TestParseTarget(t *testing.T) {
	for _, text := range []string{"", "localhost:4040", "ftp://host", "http://", "http://host/ingest?name=x",
		"http://ada:sec ret@host", "http://host/%zz"} {
		if _, err := ParsePyroscopeTarget(text); err == nil || strings.Contains(err.Error(), "sec ret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
