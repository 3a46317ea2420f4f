// Sends profiles to a server that keeps them over time: Grafana Pyroscope, Grafana Alloy, or another
// one that has Pyroscope's interface.
//
// Two requests are documented. Push, of Pyroscope 1.0 and later, is POST /push.v1.PusherService/Push with a JSON object
// (the Connect protocol): every kind of sample in the profile becomes a series of its own. Ingest, the older one, is
// POST /ingest with a form: there the kinds of samples have to be described.

package exportcmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	pushPath    = "/push.v1.PusherService/Push"
	ingestPath  = "/ingest"
	timeout     = 30 * time.Second
	maxAnswer   = 4 << 10 // bytes of a server's answer that are read
	metricName  = "memory"
	serviceName = "service_name"
)

// PyroscopeSampleType is one kind of value that the profile's samples have.
type PyroscopeSampleType struct {
	Name, Unit string
	Average    bool // a level that does not add up over time, such as bytes in use
}

// PyroscopeProfile is what is sent.
type PyroscopeProfile struct {
	Service     string            // what the program is called
	Labels      map[string]string // what distinguishes it from others of that name
	From, Until time.Time
	Types       []PyroscopeSampleType
	Pprof       []byte // as pprof reads it, compressed
}

// PyroscopeTarget is where profiles go.
type PyroscopeTarget struct {
	url    *url.URL
	ingest bool
	head   http.Header
}

// ParsePyroscopeTarget reads an address: that of a server, or of the request on it, http or https. A path that ends in
// /ingest selects the older request. A user and a password in the address are sent as HTTP's basic authentication.
func ParsePyroscopeTarget(text string) (*PyroscopeTarget, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not an address") // its text may hold a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("an address begins with http:// or https:// and a host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("an address ends with the path; labels are given apart")
	}
	t := &PyroscopeTarget{url: u, head: http.Header{}}
	switch {
	case strings.HasSuffix(u.Path, ingestPath):
		t.ingest = true
	case !strings.HasSuffix(u.Path, pushPath):
		u.Path = path.Join("/", u.Path, pushPath)
	}
	return t, nil
}

// Header adds a header to requests, such as X-Scope-OrgID for one of several tenants.
func (t *PyroscopeTarget) Header(name, value string) { t.head.Set(name, value) }

// String is the address without a password.
func (t *PyroscopeTarget) String() string { return t.url.Redacted() }

// Push sends a profile. An error holds the server's answer.
func (t *PyroscopeTarget) Push(ctx context.Context, p *PyroscopeProfile) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := t.request(ctx, p)
	if err != nil {
		return err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server sends elsewhere; name the address that it sends to")
	}}
	answer, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // it repeats the address
			err = failed.Err
		}
		return fmt.Errorf("push to %s: %w", t, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 == 2 {
		return nil
	}
	if err != nil {
		said = nil
	}
	return fmt.Errorf("push to %s: the server answers %s%s", t, answer.Status, inBrackets(words(said)))
}

// words extracts the message of a server's error: an object with a message, or plain text.
func words(said []byte) string {
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(said, &object) == nil && object.Message != "" {
		return object.Message
	}
	return strings.TrimSpace(string(said))
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (t *PyroscopeTarget) request(ctx context.Context, p *PyroscopeProfile) (*http.Request, error) {
	target, kind := *t.url, "application/json"
	var body bytes.Buffer
	var err error
	if t.ingest {
		target.RawQuery = url.Values{"name": {p.key()}, "from": {strconv.FormatInt(p.From.Unix(), 10)},
			"until":  {strconv.FormatInt(p.Until.Unix(), 10)},
			"format": {"pprof"}, "spyName": {"memtrace"}}.Encode()
		kind, err = p.form(&body)
	} else {
		err = json.NewEncoder(&body).Encode(p.object())
	}
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), &body)
	if err != nil {
		return nil, err
	}
	for name, values := range t.head {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("User-Agent", "memtrace")
	return request, nil
}

// label is a name and its value, as a push has them.
type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type pushed struct {
	Series []pushedSeries `json:"series"`
}

type pushedSeries struct {
	Labels  []label        `json:"labels"`
	Samples []pushedSample `json:"samples"`
}

type pushedSample struct {
	ID         string `json:"ID"`
	RawProfile []byte `json:"rawProfile"` // as base64
}

func (p *PyroscopeProfile) object() pushed {
	labels := []label{{"__name__", metricName}, {serviceName, p.Service}}
	for _, name := range p.labelNames() {
		labels = append(labels, label{name, p.Labels[name]})
	}
	return pushed{[]pushedSeries{{labels, []pushedSample{{p.id(), p.Pprof}}}}}
}

// id is a UUID (version 8, RFC 9562) made from the profile itself: the same one, sent again, can be recognised.
func (p *PyroscopeProfile) id() string {
	sum := sha256.Sum256(p.Pprof)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (p *PyroscopeProfile) labelNames() []string {
	var names []string
	for name, value := range p.Labels {
		if value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// outOfKeys are the characters that the key of an ingest request cannot hold.
var outOfKeys = regexp.MustCompile(`[{},="\s]+`)

// key is the name of a program and its labels as an ingest request has them: train.py{rank=3}.
func (p *PyroscopeProfile) key() string {
	var list []string
	for _, name := range p.labelNames() {
		list = append(list, name+"="+outOfKeys.ReplaceAllString(p.Labels[name], "_"))
	}
	key := outOfKeys.ReplaceAllString(p.Service, "_")
	if len(list) > 0 {
		key += "{" + strings.Join(list, ",") + "}"
	}
	return key
}

// sampleConfig is how a server treats one kind of value.
type sampleConfig struct {
	Units       string `json:"units"`
	DisplayName string `json:"display-name"`
	Aggregation string `json:"aggregation"`
	Cumulative  bool   `json:"cumulative"`
	Sampled     bool   `json:"sampled"`
}

// form writes the body of an ingest request and returns its content type.
func (p *PyroscopeProfile) form(w io.Writer) (kind string, err error) {
	config := make(map[string]sampleConfig, len(p.Types))
	for _, t := range p.Types {
		c := sampleConfig{Units: t.Unit, DisplayName: t.Name, Aggregation: "sum"}
		if t.Unit == "count" {
			c.Units = "objects"
		}
		if t.Average {
			c.Aggregation = "average"
		}
		config[t.Name] = c
	}
	form := multipart.NewWriter(w)
	part, err := form.CreateFormFile("profile", "profile.pprof")
	if err == nil {
		_, err = part.Write(p.Pprof)
	}
	if err == nil {
		part, err = form.CreateFormFile("sample_type_config", "sample_type_config.json")
	}
	if err == nil {
		err = json.NewEncoder(part).Encode(config)
	}
	return form.FormDataContentType(), errors.Join(err, form.Close())
}
