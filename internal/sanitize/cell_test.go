package sanitize

import "testing"

func TestCells(t *testing.T) {
	for _, cell := range []string{"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\r\n=1", " =1",
		"   @f()",
		"\u00a0=1", "\u3000=1", "\u200b=1", "\ufeff=1", "\x00=1", "\x7f=1", "\u202e=1", "\uff1d1", "\uff0b1+1",
		"\uff0d1+1",
		"\uff20f", "\ufe661", "\ufe621+1", "\ufe631+1", "\ufe6bf", "\u22121+1", "\ttext", "\ntext", "\n",
		"\t \uff1d1"} {
		if got := Cell(cell); got != "'"+cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
	for _, cell := range []string{"", " ", "x", "x=1", " x", "-1", "+1.5", "-1e9", "1-2", "train.py:7 f", "\u00e9",
		"'=1", "\uff11"} {
		if got := Cell(cell); got != cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
}
