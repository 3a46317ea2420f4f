package loopback

import "testing"

func TestIsHost(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:9464": true, "127.0.0.1": true, "localhost:1": true, "LocalHost": true, "[::1]:80": true,
		"::1": true, "127.9.9.9": true,
		"": false, "evil.example:80": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false,
		"10.0.0.1": false, "0.0.0.0": false, "[fe80::1]:80": false,
	} {
		if IsHost(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
