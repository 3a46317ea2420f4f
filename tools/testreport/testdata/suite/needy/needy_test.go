// Package needy needs one that does not compile.
package needy

import (
	"testing"

	_ "suite/broken"
)

func TestNothing(t *testing.T) {}
