// Package broken does not compile.
package broken

import "testing"

func TestNothing(t *testing.T) { return missing }
