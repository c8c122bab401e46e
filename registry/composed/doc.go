// Package composed reads content that is stored as a recipe. The layer of an engine's image form repeats the engine's files
// between tar headers, so its own bytes need not be stored. [Blobs] composes such content when it is read. A
// [Composer] finds layers that can be composed, compares them with their digests, and records their recipes.
package composed
