// Package loopback distinguishes requests of programs on this machine from those that a foreign web page may have made
// a browser send.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// IsHost reports whether a Host header names this machine as only programs on it can: a web page could let a name of
// its own point here.
func IsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
