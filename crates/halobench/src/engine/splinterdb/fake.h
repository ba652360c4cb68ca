/* A stand-in for SplinterDB's headers, for the lab's test: what shim.c needs of them. With FAKE_NEW it has the newer
 * arguments, without it the older ones. */
#pragma once
#include <stddef.h>

typedef unsigned long uint64;
typedef struct {
    uint64 length;
    const void *data;
} slice;
#define NULL_SLICE ((slice){0, NULL})
static inline slice slice_create(uint64 length, const void *data) { return (slice){length, data}; }
static inline uint64 slice_length(const slice s) { return s.length; }
static inline const void *slice_data(const slice s) { return s.data; }

typedef struct data_config {
    uint64 max_key_size;
} data_config;
typedef struct {
    const char *filename;
    uint64 cache_size, disk_size;
    data_config *data_cfg;
    uint64 num_memtable_bg_threads, num_normal_bg_threads;
} splinterdb_config;
typedef struct splinterdb splinterdb;
typedef struct splinterdb_iterator splinterdb_iterator;
typedef struct {
    char opaque[6 * sizeof(void *)];
} splinterdb_lookup_result;

const char *splinterdb_get_version(void);
int splinterdb_create(splinterdb_config *cfg, splinterdb **db);
int splinterdb_open(splinterdb_config *cfg, splinterdb **db);
void splinterdb_lookup_result_init(const splinterdb *db, splinterdb_lookup_result *r, uint64 len, char *buffer);
void splinterdb_lookup_result_deinit(splinterdb_lookup_result *r);
_Bool splinterdb_lookup_found(const splinterdb_lookup_result *r);
int splinterdb_lookup_result_value(const splinterdb_lookup_result *r, slice *value);
int splinterdb_lookup(const splinterdb *db, slice key, splinterdb_lookup_result *r);
void splinterdb_iterator_deinit(splinterdb_iterator *it);
_Bool splinterdb_iterator_valid(splinterdb_iterator *it);
void splinterdb_iterator_next(splinterdb_iterator *it);
void splinterdb_iterator_get_current(splinterdb_iterator *it, slice *key, slice *value);
int splinterdb_iterator_status(const splinterdb_iterator *it);

#ifdef FAKE_NEW
typedef enum { less_than = 7, less_than_or_equal, greater_than, greater_than_or_equal } comparison;
void default_data_config_init(data_config *cfg);
int splinterdb_close(splinterdb **db);
int splinterdb_insert(splinterdb *db, slice key, slice value, splinterdb_lookup_result *old);
int splinterdb_delete(splinterdb *db, slice key, splinterdb_lookup_result *old);
int splinterdb_iterator_init(const splinterdb *db, splinterdb_iterator **it, comparison from, slice key);
#else
void default_data_config_init(const size_t max_key_size, data_config *cfg);
void splinterdb_close(splinterdb **db);
void splinterdb_register_thread(splinterdb *db);
void splinterdb_deregister_thread(splinterdb *db);
int splinterdb_insert(const splinterdb *db, slice key, slice value);
int splinterdb_delete(const splinterdb *db, slice key);
int splinterdb_iterator_init(const splinterdb *db, splinterdb_iterator **it, slice key);
#endif
