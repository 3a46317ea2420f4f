package render

// style is a way to set text off. Nothing is ever said by style alone.
type style string

const (
	plain   style = ""
	strong  style = "\x1b[1m"
	faint   style = "\x1b[2m"
	alarm   style = "\x1b[31m" // growth, loss
	relief  style = "\x1b[32m" // shrinking
	blocks  style = "\x1b[36m" // a program's blocks
	slack   style = "\x1b[33m" // an allocator's slack
	outside style = "\x1b[35m" // memory outside the framework

	styleEnd = "\x1b[0m"
)

// paint sets text off if colours are on. The text's width must have been measured before.
func (o Options) paint(s style, text string) string {
	if !o.Color || s == plain || text == "" {
		return text
	}
	return string(s) + text + styleEnd
}
