// Package imageform makes the image form of an engine: an OCI image that container runtimes mount as a volume. Its one
// layer is a tar archive with the files of the engine below models/. The image is a pure function of the engine, so
// that everybody who has the engine can recompute it, byte for byte.
package imageform
