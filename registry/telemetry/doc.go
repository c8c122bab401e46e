// Package telemetry exports metrics to Prometheus and traces to OpenTelemetry, and logs each
// request.
//
// It wraps ports and handlers without changing their behavior. Metric labels have few values:
// routes, methods, codes, requirements. Names of models and callers appear only in traces and
// logs. Headers and query strings of requests are never recorded.
package telemetry
