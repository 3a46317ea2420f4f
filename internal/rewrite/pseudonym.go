package rewrite

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash"
	"strings"
)

// MinKey is the least number of bytes of a key.
const MinKey = 16

// pseudonyms replaces names by what cannot be guessed back without the key: an HMAC of the name. Two names of a file
// never share one.
type pseudonyms struct {
	mac   hash.Hash
	names map[string]string // by name
	taken map[string]bool
}

// newPseudonyms uses a random key if it gets none. Pseudonyms of different files then have nothing to do with each
// other.
func newPseudonyms(key []byte) (*pseudonyms, error) {
	if key == nil {
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make a random key: %w", err)
		}
	}
	if len(key) < MinKey {
		return nil, fmt.Errorf("a key of %d bytes can be guessed, at least %d are needed", len(key), MinKey)
	}
	return &pseudonyms{mac: hmac.New(sha256.New, key), names: make(map[string]string), taken: make(map[string]bool)},
		nil
}

// A pseudonym is pseudonymMark and pseudonymLength characters of 5 bits: a word in every language, so that it is one in
// a path, a tag and a qualified name.
const (
	pseudonymMark   = "x"
	pseudonymLength = 10
)

var pseudonymEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// of returns the pseudonym of a name; the empty name has none.
func (p *pseudonyms) of(name string) string {
	if name == "" {
		return ""
	}
	if known, ok := p.names[name]; ok {
		return known
	}
	p.mac.Reset()
	p.mac.Write([]byte(name))
	text := pseudonymEncoding.EncodeToString(p.mac.Sum(nil))
	made := pseudonymMark + text[:pseudonymLength]
	for n := pseudonymLength + 1; p.taken[made] && n <= len(text); n++ {
		made = pseudonymMark + text[:n]
	}
	p.names[name], p.taken[made] = made, true
	return made
}

// parts replaces what is between the given separators, except numbers and what keep accepts.
func (p *pseudonyms) parts(text, separators string, keep func(part string) bool) string {
	var out strings.Builder
	for text != "" {
		n := strings.IndexAny(text, separators)
		if n < 0 {
			n = len(text)
		}
		if part := text[:n]; number(part) || keep != nil && keep(part) {
			out.WriteString(part)
		} else {
			out.WriteString(p.of(part))
		}
		if n < len(text) {
			out.WriteByte(text[n])
			n++
		}
		text = text[n:]
	}
	return out.String()
}

// number reports whether a text consists of at most nine digits: the number of a layer, not a telephone's.
func number(text string) bool {
	return text != "" && len(text) <= 9 && strings.Trim(text, "0123456789") == ""
}
