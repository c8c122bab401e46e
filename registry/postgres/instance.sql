SELECT 'postgres:' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '@' || (SELECT system_identifier FROM pg_control_system())
