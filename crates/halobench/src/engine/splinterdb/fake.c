/* A stand-in for SplinterDB, for the lab's test: a sorted array that is gone when the process ends, and that refuses
 * threads which are not registered, old results that are no null, and starts from anywhere but "at or behind". */
#include "splinterdb/splinterdb.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char key[64], value[256];
    uint64 key_len, value_len;
} entry;
struct splinterdb {
    entry *all;
    size_t count, room;
};
struct splinterdb_iterator {
    const splinterdb *db;
    size_t at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static splinterdb kept; /* what a reopening finds */

#ifdef FAKE_NEW
#define REGISTERED 1
static void enter(void) {}
#else
static __thread int registered;
static void enter(void) { registered++; }
#define REGISTERED (registered == 1)
void splinterdb_register_thread(splinterdb *db) { (void)db; registered++; }
void splinterdb_deregister_thread(splinterdb *db) { (void)db; registered--; }
#endif

const char *splinterdb_get_version(void) { return "splinterdb_build_version fake"; }

static int order(const entry *e, slice key)
{
    uint64 n = e->key_len < key.length ? e->key_len : key.length;
    int c = n ? memcmp(e->key, key.data, n) : 0;
    return c ? c : (e->key_len > key.length) - (e->key_len < key.length);
}

/* The first entry at or behind the key. */
static size_t find(const splinterdb *db, slice key)
{
    size_t i = 0;
    while (i < db->count && order(&db->all[i], key) < 0) i++;
    return i;
}

int splinterdb_create(splinterdb_config *cfg, splinterdb **db)
{
    if (!cfg->cache_size || !cfg->disk_size || !cfg->num_normal_bg_threads || cfg->data_cfg->max_key_size == 0) return 22;
    free(kept.all);
    kept = (splinterdb){0};
    enter();
    *db = &kept;
    return 0;
}

int splinterdb_open(splinterdb_config *cfg, splinterdb **db)
{
    (void)cfg;
    enter();
    *db = &kept;
    return 0;
}

static int insert(splinterdb *db, slice key, slice value)
{
    if (!REGISTERED || key.length > 64 || value.length > 256) return 22;
    pthread_mutex_lock(&lock);
    size_t i = find(db, key);
    if (i == db->count || order(&db->all[i], key) != 0) {
        if (db->count == db->room) db->all = realloc(db->all, (db->room = db->room * 2 + 64) * sizeof *db->all);
        memmove(db->all + i + 1, db->all + i, (db->count++ - i) * sizeof *db->all);
    }
    entry *e = &db->all[i];
    e->key_len = key.length;
    e->value_len = value.length;
    memcpy(e->key, key.data, key.length);
    memcpy(e->value, value.data, value.length);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int erase(splinterdb *db, slice key)
{
    if (!REGISTERED) return 22;
    pthread_mutex_lock(&lock);
    size_t i = find(db, key);
    if (i < db->count && order(&db->all[i], key) == 0)
        memmove(db->all + i, db->all + i + 1, (--db->count - i) * sizeof *db->all);
    pthread_mutex_unlock(&lock);
    return 0;
}

typedef struct {
    const entry *found;
} result;

void splinterdb_lookup_result_init(const splinterdb *db, splinterdb_lookup_result *r, uint64 len, char *buffer)
{
    (void)db, (void)len, (void)buffer;
    memset(r, 0, sizeof *r);
}
void splinterdb_lookup_result_deinit(splinterdb_lookup_result *r) { (void)r; }
_Bool splinterdb_lookup_found(const splinterdb_lookup_result *r) { return ((const result *)r)->found != NULL; }
int splinterdb_lookup_result_value(const splinterdb_lookup_result *r, slice *value)
{
    const entry *e = ((const result *)r)->found;
    *value = slice_create(e->value_len, e->value);
    return 0;
}
int splinterdb_lookup(const splinterdb *db, slice key, splinterdb_lookup_result *r)
{
    if (!REGISTERED) return 22;
    size_t i = find(db, key);
    ((result *)r)->found = i < db->count && order(&db->all[i], key) == 0 ? &db->all[i] : NULL;
    return 0;
}

static int start(const splinterdb *db, splinterdb_iterator **it, slice key)
{
    if (!REGISTERED) return 22;
    *it = malloc(sizeof **it);
    **it = (splinterdb_iterator){db, key.data ? find(db, key) : 0};
    return 0;
}
void splinterdb_iterator_deinit(splinterdb_iterator *it) { free(it); }
_Bool splinterdb_iterator_valid(splinterdb_iterator *it) { return it->at < it->db->count; }
void splinterdb_iterator_next(splinterdb_iterator *it) { it->at++; }
void splinterdb_iterator_get_current(splinterdb_iterator *it, slice *key, slice *value)
{
    const entry *e = &it->db->all[it->at];
    *key = slice_create(e->key_len, e->key);
    *value = slice_create(e->value_len, e->value);
}
int splinterdb_iterator_status(const splinterdb_iterator *it) { (void)it; return 0; }

#ifdef FAKE_NEW
void default_data_config_init(data_config *cfg) { cfg->max_key_size = 1; }
int splinterdb_close(splinterdb **db) { *db = NULL; return 0; }
int splinterdb_insert(splinterdb *db, slice key, slice value, splinterdb_lookup_result *old)
{
    return old ? 22 : insert(db, key, value);
}
int splinterdb_delete(splinterdb *db, slice key, splinterdb_lookup_result *old) { return old ? 22 : erase(db, key); }
int splinterdb_iterator_init(const splinterdb *db, splinterdb_iterator **it, comparison from, slice key)
{
    return from == greater_than_or_equal ? start(db, it, key) : 22;
}
#else
void default_data_config_init(const size_t max_key_size, data_config *cfg) { cfg->max_key_size = max_key_size; }
void splinterdb_close(splinterdb **db)
{
    if (REGISTERED) *db = NULL;
    registered--;
}
int splinterdb_insert(const splinterdb *db, slice key, slice value) { return insert((splinterdb *)db, key, value); }
int splinterdb_delete(const splinterdb *db, slice key) { return erase((splinterdb *)db, key); }
int splinterdb_iterator_init(const splinterdb *db, splinterdb_iterator **it, slice key) { return start(db, it, key); }
#endif
