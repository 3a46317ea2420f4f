package layout

// style is a way to set text off. Nothing is ever said by style alone.
type Style string

const (
	Plain   Style = ""
	Strong  Style = "\x1b[1m"
	Faint   Style = "\x1b[2m"
	Alarm   Style = "\x1b[31m" // growth, loss
	Relief  Style = "\x1b[32m" // shrinking
	Blocks  Style = "\x1b[36m" // a program's blocks
	Slack   Style = "\x1b[33m" // an allocator's slack
	Outside Style = "\x1b[35m" // memory outside the framework

	StyleEnd = "\x1b[0m"
)

// paint sets text off if colours are on. The text's width must have been measured before.
func (o Options) Paint(s Style, text string) string {
	if !o.Color || s == Plain || text == "" {
		return text
	}
	return string(s) + text + StyleEnd
}
