package layout

// Style is a text style. Style alone carries no information.
type Style string

const (
	// Plain is text as it is.
	Plain Style = ""
	// Strong is for titles and for the figures that matter most.
	Strong Style = "\x1b[1m"
	// Faint is for text that readers may skip.
	Faint Style = "\x1b[2m"
	// Alarm is for growth and loss.
	Alarm Style = "\x1b[31m"
	// Relief is for what shrinks.
	Relief Style = "\x1b[32m"
	// Blocks is for a program's blocks.
	Blocks Style = "\x1b[36m"
	// Slack is for an allocator's slack.
	Slack Style = "\x1b[33m"
	// Outside is for memory outside the framework.
	Outside Style = "\x1b[35m"

	// StyleEnd ends every style.
	StyleEnd = "\x1b[0m"
)

// Paint sets text off if colours are on. The text's width must have been measured before.
func (o Options) Paint(s Style, text string) string {
	if !o.Color || s == Plain || text == "" {
		return text
	}
	return string(s) + text + StyleEnd
}
