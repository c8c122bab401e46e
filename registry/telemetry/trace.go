package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"mlpromote.dev/mlpromote/registry"
)

// NewTracing exports traces to the collector that the environment variables of OpenTelemetry
// name, such as OTEL_EXPORTER_OTLP_ENDPOINT, with OTLP over HTTP. Shut the returned provider
// down to send the remaining traces. Errors: CodeInvalid.
func NewTracing(ctx context.Context, version string) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "traces: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "mlpromote"), attribute.String("service.version", version)),
		resource.WithFromEnv(), resource.WithHost(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "traces: %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described)), nil
}
