// Package thin makes an old part of a trace smaller without changing what it says about the moments that count: it
// leaves out blocks that were allocated and freed between two such moments.
package thin
