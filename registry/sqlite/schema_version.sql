SELECT user_version, application_id FROM pragma_user_version, pragma_application_id;
