// Package broken does not compile.
package broken

func nothing() int { return missing }
