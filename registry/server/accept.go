package server

import (
	"strconv"
	"strings"
)

// quality returns the weight from 0 to 1 that the values of a header such as Accept give to a
// name, by the most specific element that matches (RFC 9110, section 12.4.2). named is false if
// only a wildcard or no element matches.
func quality(values []string, name string) (weight float64, named bool) {
	best := -1
	family, _, slashed := strings.Cut(name, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		element, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		specific := -1
		switch element = strings.ToLower(strings.TrimSpace(element)); {
		case element == name:
			specific = 2
		case slashed && element == family+"/*":
			specific = 1
		case element == "*" || element == "*/*":
			specific = 0
		}
		if specific > best {
			best, weight = specific, weightOf(parameters)
		}
	}
	return weight, best == 2
}

// weightOf reads q= among parameters. It ignores an unreadable value.
func weightOf(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(key, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
	}
	return 1
}

// prefers reports whether one is named explicitly and has at least the weight of the other.
func prefers(values []string, one, other string) bool {
	weight, named := quality(values, one)
	than, rival := quality(values, other)
	return named && weight > 0 && (weight >= than || !rival)
}

// wantsText reports whether a client prefers plain text over JSON. The default is JSON.
func wantsText(r *request) bool {
	values := r.Header.Values("Accept")
	text, named := quality(values, "text/plain")
	structured, rival := quality(values, jsonType)
	if text == structured {
		return text > 0 && named && !rival
	}
	return text > structured
}

const jsonType = "application/json"
