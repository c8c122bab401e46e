// Package telemetry tells what a registry does: metrics for Prometheus, traces for
// OpenTelemetry, and a line in the log for each request.
//
// It wraps ports and handlers and changes nothing of what they do. Labels have few values:
// routes, methods, codes, requirements; never names of models or callers, which traces and
// the log have. No header and no query of a request is written anywhere.
package telemetry
