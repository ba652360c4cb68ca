/* What the lab needs of SplinterDB, behind functions of plain types.
 *
 * SplinterDB has no released binary interface: fields of its configuration and arguments of its functions have come and
 * gone between commits. So this file is compiled against the headers of the library at hand, and the lab loads the
 * result. Names that only some commits have are asked for with macros, which the lab tries in turn:
 *
 * HB_REGISTER     threads are registered (splinterdb_register_thread)
 * HB_COMPARISON   an iterator is told on which side of its key to start
 *
 * A function whose arguments grew is called through the type that it has, which the compiler knows.
 *
 * Results: 0 is success and anything else SplinterDB's error, unless said otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "splinterdb/default_data_config.h"
#include "splinterdb/splinterdb.h"

#define IS(name, ...) __builtin_types_compatible_p(__typeof__(name), __VA_ARGS__)
#define AS(name, ...) ((__VA_ARGS__)(void (*)(void))(name))

typedef struct {
    splinterdb *db;
    data_config data;
    splinterdb_config config;
} hb_db;

typedef struct {
    hb_db *db;
    splinterdb_lookup_result result;
} hb_session;

const char *hb_version(void) { return splinterdb_get_version(); }

int hb_open(const char *file, int create, unsigned long cache, unsigned long disk, unsigned long memtable_threads,
            unsigned long normal_threads, unsigned long max_key, void **out)
{
    hb_db *db = calloc(1, sizeof *db);
    int rc;
    if (!db) return -1;
    /* Older: the longest key is told. */
    if (IS(default_data_config_init, void(size_t, data_config *)) ||
        IS(default_data_config_init, void(unsigned long, data_config *)))
        AS(default_data_config_init, void (*)(size_t, data_config *))(max_key, &db->data);
    else
        AS(default_data_config_init, void (*)(data_config *))(&db->data);
    db->config.filename = file;
    db->config.cache_size = cache;
    db->config.disk_size = disk;
    db->config.data_cfg = &db->data;
    db->config.num_memtable_bg_threads = memtable_threads;
    db->config.num_normal_bg_threads = normal_threads;
    rc = create ? splinterdb_create(&db->config, &db->db) : splinterdb_open(&db->config, &db->db);
    if (rc != 0) {
        free(db);
        return rc;
    }
    *out = db;
    return 0;
}

int hb_close(void *handle)
{
    hb_db *db = handle;
    int rc = 0;
    /* Older: it returns nothing. */
    if (IS(splinterdb_close, int(splinterdb **)))
        rc = AS(splinterdb_close, int (*)(splinterdb **))(&db->db);
    else
        AS(splinterdb_close, void (*)(splinterdb **))(&db->db);
    free(db);
    return rc;
}

void hb_register(void *handle)
{
#ifdef HB_REGISTER
    splinterdb_register_thread(((hb_db *)handle)->db);
#else
    (void)handle;
#endif
}

void hb_deregister(void *handle)
{
#ifdef HB_REGISTER
    splinterdb_deregister_thread(((hb_db *)handle)->db);
#else
    (void)handle;
#endif
}

int hb_put(void *handle, const void *key, size_t key_len, const void *value, size_t value_len)
{
    splinterdb *db = ((hb_db *)handle)->db;
    slice k = slice_create(key_len, key), v = slice_create(value_len, value);
    /* Newer: the value that was there can be asked for. */
    if (IS(splinterdb_insert, int(const splinterdb *, slice, slice)) ||
        IS(splinterdb_insert, int(splinterdb *, slice, slice)))
        return AS(splinterdb_insert, int (*)(splinterdb *, slice, slice))(db, k, v);
    return AS(splinterdb_insert, int (*)(splinterdb *, slice, slice, void *))(db, k, v, NULL);
}

int hb_delete(void *handle, const void *key, size_t key_len)
{
    splinterdb *db = ((hb_db *)handle)->db;
    slice k = slice_create(key_len, key);
    if (IS(splinterdb_delete, int(const splinterdb *, slice)) || IS(splinterdb_delete, int(splinterdb *, slice)))
        return AS(splinterdb_delete, int (*)(splinterdb *, slice))(db, k);
    return AS(splinterdb_delete, int (*)(splinterdb *, slice, void *))(db, k, NULL);
}

void *hb_session_begin(void *handle)
{
    hb_session *s = calloc(1, sizeof *s);
    if (s) {
        s->db = handle;
        splinterdb_lookup_result_init(s->db->db, &s->result, 0, NULL);
    }
    return s;
}

void hb_session_end(void *session)
{
    splinterdb_lookup_result_deinit(&((hb_session *)session)->result);
    free(session);
}

/* Lends the value until the next call. Without one, `*value` is null. */
int hb_get(void *session, const void *key, size_t key_len, const void **value, size_t *value_len)
{
    hb_session *s = session;
    slice v;
    int rc = splinterdb_lookup(s->db->db, slice_create(key_len, key), &s->result);
    *value = NULL;
    *value_len = 0;
    if (rc != 0 || !splinterdb_lookup_found(&s->result)) return rc;
    rc = splinterdb_lookup_result_value(&s->result, &v);
    if (rc != 0) return rc;
    *value = slice_length(v) ? slice_data(v) : "";
    *value_len = slice_length(v);
    return 0;
}

/* Starts at the first entry at or behind the key; without a key (null), at the first. */
int hb_iter_begin(void *handle, const void *key, size_t key_len, void **out)
{
    splinterdb *db = ((hb_db *)handle)->db;
    slice start = key ? slice_create(key_len, key) : NULL_SLICE;
    splinterdb_iterator *iter = NULL;
#ifdef HB_COMPARISON
    int rc = splinterdb_iterator_init(db, &iter, greater_than_or_equal, start);
#else
    int rc = splinterdb_iterator_init(db, &iter, start);
#endif
    *out = iter;
    return rc;
}

void hb_iter_end(void *iter) { splinterdb_iterator_deinit(iter); }
void hb_iter_next(void *iter) { splinterdb_iterator_next(iter); }

/* Lends the entry until the next move. At the end, `*key` is null. */
int hb_iter_at(void *iter, const void **key, size_t *key_len, const void **value, size_t *value_len)
{
    slice k, v;
    *key = NULL;
    if (!splinterdb_iterator_valid(iter)) return splinterdb_iterator_status(iter);
    splinterdb_iterator_get_current(iter, &k, &v);
    *key = slice_length(k) ? slice_data(k) : "";
    *key_len = slice_length(k);
    *value = slice_length(v) ? slice_data(v) : "";
    *value_len = slice_length(v);
    return 0;
}
