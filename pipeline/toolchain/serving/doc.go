// Package serving runs engines through a model server: the driver that starts the server on a folder, waits until it is
// ready, and sends it the cases by a protocol that clients use. [Main] is the child process of mlpromote.driver/v1; server and
// child are alone in a network of their own.
//
// A server could answer from other files than the engine's: an older version, or a copy in a cache. So [Main] also
// starts it on the same folder in which the engine's files are zeros. A server that answers then does not serve the engine.
package serving
