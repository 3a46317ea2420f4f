package page

import (
	_ "embed"
	"html/template"
)

//go:embed head.html
var headText string

// head is what every page begins with: its policy allows the style and the script of this program and nothing else.
type head struct {
	Title, Writer         string // what is read, and the program and its version
	Style                 template.CSS
	Script                template.JS
	StyleHash, ScriptHash string // "": there is no script
	Connect               string // connect-src of the policy: nothing, or the page's server
}

// newHead is the head of a page about names; script may be "".
func newHead(names, writer, script string) head {
	h := head{Title: "memtrace: " + names, Writer: writer, Style: template.CSS(styleText), Script: template.JS(script),
		StyleHash: hash(styleText)}
	if script != "" {
		h.ScriptHash = hash(script)
	}
	return h
}

// parsed is the template of a page whose text has the head in it.
func parsed(name, text string) *template.Template {
	return template.Must(template.Must(template.New(name).Parse(headText)).Parse(text))
}
