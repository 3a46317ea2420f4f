#include "object.h"

#include <stdlib.h>

static struct nc_object **buckets;
static size_t bucket_count, object_count;

static size_t bucket_of(const void *handle, size_t count)
{
	return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (count - 1);
}

// Keeps the chains short. Staying at the old size when memory is short is fine.
static void grow(void)
{
	size_t count = bucket_count ? bucket_count * 2 : 1024;
	struct nc_object **bigger = calloc(count, sizeof *bigger);
	if (!bigger)
		return;
	for (size_t i = 0; i < bucket_count; i++)
		for (struct nc_object *object = buckets[i], *next; object; object = next) {
			next = object->next;
			struct nc_object **bucket = &bigger[bucket_of(object, count)];
			object->next = *bucket;
			*bucket = object;
		}
	free(buckets);
	buckets = bigger;
	bucket_count = count;
}

void nc_object_add(void *added)
{
	struct nc_object *object = added, **bucket = &buckets[bucket_of(object, bucket_count)];
	object->next = *bucket;
	*bucket = object;
	object_count++;
}

void *nc_object_new(enum nc_object_type type, size_t size, struct nc_context *owner)
{
	if (object_count >= bucket_count)
		grow();
	struct nc_object *object = bucket_count ? calloc(1, size) : NULL;
	if (!object)
		return NULL;
	*object = (struct nc_object){.type = type, .owner = owner};
	nc_object_add(object);
	return object;
}

void *nc_object_find(const void *handle, enum nc_object_type type)
{
	if (!bucket_count)
		return NULL;
	for (struct nc_object *object = buckets[bucket_of(handle, bucket_count)]; object; object = object->next)
		if (object == handle)
			return object->type == type ? object : NULL;
	return NULL;
}

void nc_object_remove(void *object)
{
	struct nc_object **link = &buckets[bucket_of(object, bucket_count)];
	while (*link != object)
		link = &(*link)->next;
	*link = ((struct nc_object *)object)->next;
	object_count--;
}

void nc_object_delete(void *object)
{
	nc_object_remove(object);
	free(object);
}

void nc_object_sweep(struct nc_context *owner, enum nc_object_type type, void (*destroy)(void *object))
{
	for (size_t i = 0; i < bucket_count; i++) {
		struct nc_object *object = buckets[i];
		while (object) {
			if (object->owner != owner || object->type != type) {
				object = object->next;
				continue;
			}
			destroy(object);
			object = buckets[i]; // the chain may have changed
		}
	}
}

void nc_object_each(enum nc_object_type type, void (*visit)(void *object, void *argument), void *argument)
{
	for (size_t i = 0; i < bucket_count; i++)
		for (struct nc_object *object = buckets[i]; object; object = object->next)
			if (object->type == type)
				visit(object, argument);
}
