package server

import "mlpromote.dev/mlpromote/registry"

// required are the parameters in queries without which there is no answer, by operation.
func required() []string {
	return []string{
		"resolveFacts env", "releases environment", "release environment", "engines environment", "engine environment", "engine digest",
		"evidence environment", "bundle environment", "bundle digest",
	}
}

// known is what is said of a parameter wherever it stands.
func known() map[string]object {
	text := func(description string) object { return object{"description": description} }
	number := func(description string, least int) object {
		return object{"description": description, "schema": object{"type": "integer", "minimum": least}}
	}
	all := map[string]object{
		"model":           text("Name of a model. Its slashes may stand as they are or as %2F."),
		"name":            text("Name of a document. Its slashes may stand as they are or as %2F."),
		"id":              text("Identifier of a webhook or token."),
		"seq":             number("Number of an event of the history.", 1),
		"environment":     text("Name of an environment."),
		"env":             text("Name of an environment; short for environment."),
		"reference":       text("Tag or digest of a release; absent: the head."),
		"version":         text("Tag of a release; absent: the head."),
		"variant":         text("Only engines of this variant."),
		"digest":          text("Digest of a manifest."),
		"nodeType":        text("Name of a node type, in place of facts."),
		"cursor":          text("Where the page begins: from the Link header of the page before."),
		"limit":           {"description": "How much a page holds at most.", "schema": object{"type": "integer", "minimum": 1, "maximum": registry.MaxPage, "default": registry.DefaultPage}},
		"kind":            {"description": "Only events of this kind.", "schema": enum(registry.EventKinds())},
		"subject":         text("Only evidence about this digest."),
		"after":           text("What comes behind this: a name, or the number of an event."),
		"before":          number("Only events before this number.", 0),
		"order":           {"description": "asc: oldest first.", "schema": object{"type": "string", "enum": []any{"asc", "desc"}, "default": "asc"}},
		"runtime":         {"description": "Name of a known runtime, or NAME:VERSION; several for several. Absent: what the node has.", "schema": object{"type": "array", "items": object{"type": "string"}}, "explode": true},
		"os":              {"description": "As GOOS.", "schema": object{"type": "string", "default": "linux"}},
		"arch":            text("As GOARCH; with it the facts of a node begin."),
		"level":           {"description": "x86-64 psABI level.", "schema": object{"type": "string", "enum": []any{"v1", "v2", "v3", "v4"}}},
		"features":        text("Features of the processor, separated by commas."),
		"memoryMiB":       number("Memory.", 0),
		"gpuVendor":       {"description": "Vendor of the accelerators.", "schema": object{"type": "string", "default": "nvidia"}},
		"gpuProduct":      text("Product, as GPU feature discovery names it."),
		"gpuArch":         text("Architecture, such as sm_90."),
		"gpuMemoryMiB":    number("Memory of each accelerator.", 0),
		"gpuMig":          text("MIG profile; absent: whole devices."),
		"gpuDriver":       text("Version of the driver."),
		"gpuCount":        {"description": "How many accelerators there are, all alike.", "schema": object{"type": "integer", "minimum": 1, "maximum": maxDevices, "default": 1}},
		"Idempotency-Key": {"description": "A request that comes twice with one key within a day is done once and answered twice alike.", "schema": object{"type": "string", "minLength": 1, "maxLength": 255}},
		"Last-Event-ID":   number("Number of the last event that was seen; the stream goes on behind it.", 0),
	}
	return all
}
