SELECT 'postgres:' || (SELECT oid FROM pg_database WHERE datname = current_database())
