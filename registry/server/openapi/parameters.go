package openapi

import (
	"maps"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// known documents parameters that mean the same in every operation.
func known() map[string]object {
	text := func(description string) object { return object{"description": description} }
	number := func(description string, least int) object {
		return object{"description": description, "schema": object{"type": "integer", "minimum": least}}
	}
	all := map[string]object{
		"model":       text("Name of a model. Its slashes may stand as they are or as %2F."),
		"name":        text("Name of a document. Its slashes may stand as they are or as %2F."),
		"id":          text("Identifier of a webhook or token."),
		"seq":         number("Number of an event of the history.", 1),
		"environment": text("Name of an environment."),
		"ref":         text("Tag or digest of a release; absent: the head."),
		"version":     text("Tag of a release; absent: the head."),
		"variant":     text("Only engines of this variant."),
		"as": {
			"description": "The form of the engine that ref of the answer names; image is for container runtimes. Absent: engine.",
			"schema":      enum([]string{"engine", "image"}),
		},
		"digest":   text("Digest of a manifest."),
		"nodeType": text("Name of a node type, in place of facts."),
		"cursor":   text("Start of the page, from the Link header of the previous page."),
		"limit": {
			"description": "Maximum number of items in a page.",
			"schema":      object{"type": "integer", "minimum": 1, "maximum": storage.MaxPage, "default": storage.DefaultPage},
		},
		"kind":      {"description": "Only events of this kind.", "schema": enum(history.EventKinds())},
		"subject":   text("Only evidence about this digest."),
		"signer":    text("Only events that this key signed, by its identifier."),
		"principal": text("Only events of this caller, such as token:ci."),
		"after":     text("Only items after this name or event number."),
		"before":    number("Only events before this number.", 0),
		"order": {
			"description": "asc: oldest first.",
			"schema":      object{"type": "string", "enum": []any{"asc", "desc"}, "default": "asc"},
		},
		"runtime": {
			"description": "Name of a known runtime, or NAME:VERSION; repeat for several. Absent: the runtimes of the node.",
			"schema":      object{"type": "array", "items": object{"type": "string"}},
			"explode":     true,
		},
		"os":   {"description": "As GOOS.", "schema": object{"type": "string", "default": "linux"}},
		"arch": text("As GOARCH; required to describe a node by facts."),
		"level": {
			"description": "x86-64 psABI level.",
			"schema":      object{"type": "string", "enum": []any{"v1", "v2", "v3", "v4"}},
		},
		"features":  text("Features of the processor, separated by commas."),
		"memoryMiB": number("Memory.", 0),
		"Idempotency-Key": {
			"description": "Requests with the same key within a day are executed once and get the same response.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 255},
		},
		"Last-Event-ID": number("Number of the last event received; the stream continues after it.", 0),
	}
	maps.Copy(all, ofAccelerators(text, number))
	maps.Copy(all, ofOne())
	return all
}

// ofAccelerators documents parameters that describe the accelerators of a node.
func ofAccelerators(text func(string) object, number func(string, int) object) map[string]object {
	return map[string]object{
		"gpuVendor":    {"description": "Vendor of the accelerators.", "schema": object{"type": "string", "default": "nvidia"}},
		"gpuProduct":   text("Product, as GPU feature discovery names it."),
		"gpuArch":      text("Architecture, such as sm_90."),
		"gpuMemoryMiB": number("Memory of each accelerator.", 0),
		"gpuMig":       text("MIG profile; absent: whole devices."),
		"gpuDriver":    text("Version of the driver."),
		"gpuCount": {
			"description": "How many accelerators there are, all alike.",
			"schema":      object{"type": "integer", "minimum": 1, "maximum": MaxDevices, "default": 1},
		},
	}
}

// ofOne documents parameters that one operation has.
func ofOne() map[string]object {
	return map[string]object{
		"from":   {"description": "Digest of the release that was."},
		"to":     {"description": "Digest of the release that is compared with it."},
		"silent": {"description": "true: reports that have expired, in place of those that count.", "schema": object{"type": "boolean", "default": false}},
	}
}

// MaxDevices limits the accelerators of a node in a query.
const MaxDevices = 64
