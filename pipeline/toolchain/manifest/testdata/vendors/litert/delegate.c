/* A delegate of LiteRT that takes no operator, so that the processor runs all: in place of libedgetpu, which needs an Edge TPU. */
#include <stdint.h>
#include <stdlib.h>

/* TfLiteDelegate of tensorflow/lite/core/c/common.h. */
typedef struct delegate {
	void *data;
	int (*prepare)(void *context, struct delegate *self);
	void *from, *to, *release;
	int64_t flags;
	void *builder;
} delegate;

static int prepare(void *context, delegate *self)
{
	(void)context, (void)self;
	return 0;
}

delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t options, void (*report)(const char *))
{
	(void)keys, (void)values, (void)report;
	delegate *made = options == 0 ? calloc(1, sizeof *made) : NULL;
	if (made)
		made->prepare = prepare;
	return made;
}

void tflite_plugin_destroy_delegate(delegate *old)
{
	free(old);
}
