-- Writes what detection keeps, after a merge.

return put_watch(watch_key(A.run), A.watch.based, A.watch.value)
