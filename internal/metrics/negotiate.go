package metrics

import (
	"mime"
	"strconv"
	"strings"
)

// openMetricsVersions are those that Write's output is right for.
var openMetricsVersions = map[string]bool{"": true, "0.0.1": true, "1.0.0": true}

// Negotiate chooses the format that an Accept header prefers. The classic one is the default, also where another one is
// requested: curl and browsers can show it.
func Negotiate(accept string) Format {
	best, format := 0.0, Classic
	classic := 0.0
	for part := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality := 1.0
		if text, given := parameters["q"]; given {
			if quality, err = strconv.ParseFloat(text, 64); err != nil || quality < 0 || quality > 1 {
				continue
			}
		}
		switch {
		case kind == "application/openmetrics-text" && openMetricsVersions[parameters["version"]]:
			if quality > best {
				best, format = quality, OpenMetrics
			}
		case kind == "text/plain" && (parameters["version"] == "" || parameters["version"] == "0.0.4"):
			classic = max(classic, quality)
		}
	}
	if classic > best {
		return Classic
	}
	return format
}
